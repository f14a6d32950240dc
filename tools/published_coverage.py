"""How many published throughputs would have one of ours next to them, if all studies ran on an unlimited cluster.

``python -m tools.published_coverage`` prints, for each study after a published source that asks a question: the
configurations and how many of them could run, on CPUs or on GPUs, with every library installed; the published
throughputs, how many of them ask what a configuration of the study asks, and of how many one could run.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pandas as pd

from dlperf_study.audit.published import read_source
from dlperf_study.audit.published.points import Published
from dlperf_study.audit.published.same_question import SameQuestion
from dlperf_study.core.paths import PROJECT
from dlperf_study.core.terminal import text_table
from dlperf_study.machines.cluster import Cluster
from dlperf_study.programs import frameworks
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.plan import Plan, build_plan
from dlperf_study.study.study_file import load_study
from dlperf_study.study.training_parameters import MAX_DEVICES_PER_NODE, MAX_NODES


@dataclass(frozen=True)
class Coverage:
    """Of one study: its configurations and the published throughputs, and how many of both can be had."""

    study: str
    configurations: int
    runnable: int
    throughputs: int
    planned: int
    measurable: int


def unlimited(device: str) -> Cluster:
    """Return a cluster with more nodes and devices of one kind than any study asks for."""
    return Cluster("unlimited", MAX_NODES, MAX_DEVICES_PER_NODE, device, device_name="", launcher="ssh")


def plan_on(device: str, study: str) -> Plan:
    """Return the plan of a study on an unlimited cluster where every library is installed, in some version."""
    cluster = unlimited(device)

    def unsupported(configuration: Configuration) -> str | None:
        # The empty version is that of a library of which nobody knows the version.
        obstacles = frameworks.load(configuration.framework).obstacles(configuration, cluster, "")
        return "; ".join(obstacles) or None

    return build_plan(load_study(study), cluster, unsupported)


def seed_studies() -> Iterator[str]:
    """Yield the studies after a published source that asks a question."""
    for path in sorted((PROJECT / "params" / "studies").glob("*.yaml")):
        if any(read_source(name).question for name in load_study(path.stem).published):
            yield path.stem


def configurations_of(study: str) -> pd.DataFrame:
    """Return every configuration of a study on CPUs and on GPUs, with ``is_extra`` and whether it could run there."""
    rows = []
    for device in ("cpu", "gpu"):
        for entry in plan_on(device, study).entries:
            facts = {"device": device, "can_run": entry.unsupported is None, "is_extra": entry.is_extra}
            rows.append({"identity": entry.configuration.identity, **entry.parameters, **facts})
    return pd.DataFrame(rows)


def coverage_of(study: str) -> Coverage:
    """Return what can be had of one study and the published throughputs of its question."""
    names = tuple(name for name in load_study(study).published if read_source(name).question)
    points, configurations = Published.read(names).points, configurations_of(study)
    could_run = configurations[configurations["can_run"]]
    return Coverage(
        study=study,
        configurations=configurations["identity"].nunique(),
        runnable=could_run["identity"].nunique(),
        throughputs=len(points),
        planned=_answered(points, configurations),
        measurable=_answered(points, could_run),
    )


def _answered(points: pd.DataFrame, configurations: pd.DataFrame) -> int:
    return sum(bool(match.identities) for match in SameQuestion(points, configurations).matches())


def total(coverages: list[Coverage]) -> Coverage:
    """Return the sum over studies."""
    sums = {}
    for name in vars(coverages[0]):
        if name != "study":
            sums[name] = sum(getattr(coverage, name) for coverage in coverages)
    return replace(coverages[0], study="all", **sums)


def main() -> None:
    """Print a row for each study, and their sum."""
    coverages = list(map(coverage_of, seed_studies()))
    headings = (
        "study",
        "configurations",
        "can run",
        "published throughputs",
        "with one planned",
        "with one that can run",
    )
    rows = [tuple(map(str, vars(coverage).values())) for coverage in (*coverages, total(coverages))]
    print(text_table(headings, rows))


if __name__ == "__main__":
    main()
