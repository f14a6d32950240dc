"""How many published throughputs would have one of ours next to them, if all studies ran on an unlimited cluster.

``python -m tools.published_coverage`` prints, for each study that names published sources: the configurations and how
many of them could run, on CPUs or on GPUs, with every library installed; the published throughputs, how many of them
ask what a configuration of the study asks, and of how many one could run. Then the same for each source of the package,
over all studies, and how many cells for a throughput have a dash.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from dlperf_study.audit.published import load, read_source, source_names
from dlperf_study.audit.published.points import result_points
from dlperf_study.audit.published.same_question import SameQuestion
from dlperf_study.core.paths import PROJECT
from dlperf_study.core.terminal import text_table
from dlperf_study.machines.cluster import Cluster
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.plan import Plan, build_plan
from dlperf_study.study.study_file import load_study
from dlperf_study.study.training_parameters import MAX_DEVICES_PER_NODE, MAX_NODES
from dlperf_study.training import frameworks


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


def studies_of_sources() -> Iterator[str]:
    """Yield the studies that name a published source."""
    for path in sorted((PROJECT / "params" / "studies").glob("*.yaml")):
        if load_study(path.stem).published:
            yield path.stem


def seed_studies() -> Iterator[str]:
    """Yield the studies after a published source that asks a question."""
    for study in studies_of_sources():
        if any(read_source(name).question for name in load_study(study).published):
            yield study


def configurations_of(study: str) -> pd.DataFrame:
    """Return every configuration of a study on CPUs and on GPUs, with whether it is published and could run there."""
    rows = []
    for device in ("cpu", "gpu"):
        for entry in plan_on(device, study).entries:
            facts = {"device": device, "can_run": entry.unsupported is None, "is_unpublished": entry.is_unpublished}
            rows.append({"configuration_id": entry.configuration.configuration_id, **entry.parameters, **facts})
    return pd.DataFrame(rows)


def throughputs_of(sources: list[str] | None = None) -> pd.DataFrame:
    """Return the published throughputs of some sources, or of all, a row each."""
    return result_points(load(sources))


def answered(points: pd.DataFrame, configurations: pd.DataFrame) -> pd.DataFrame:
    """Return for each published throughput whether one of ours asks the same: ``planned``, or ``measurable`` too."""
    could_run = configurations[configurations["can_run"]]
    columns = {"planned": configurations, "measurable": could_run}
    answers = {name: _is_answered(points, rows) for name, rows in columns.items()}
    return pd.DataFrame(answers, index=points["cell"])


def _is_answered(points: pd.DataFrame, configurations: pd.DataFrame) -> list[bool]:
    return [bool(match.configuration_ids) for match in SameQuestion(points, configurations).matches()]


def coverage_of(study: str) -> Coverage:
    """Return what can be had of one study, and of the published throughputs of its sources."""
    configurations = configurations_of(study)
    answers = answered(throughputs_of(list(load_study(study).published)), configurations)
    return Coverage(
        study=study,
        configurations=configurations["configuration_id"].nunique(),
        runnable=configurations.loc[configurations["can_run"], "configuration_id"].nunique(),
        throughputs=len(answers),
        planned=int(answers["planned"].sum()),
        measurable=int(answers["measurable"].sum()),
    )


def answers_of_all_studies() -> pd.DataFrame:
    """Return for each published throughput of the package its source, and what ``answered`` says over all studies.

    A study answers the numbers of the sources that it names.
    """
    points = throughputs_of()
    cells: dict[str, set[str]] = {"planned": set(), "measurable": set()}
    for study in studies_of_sources():
        of_study = answered(throughputs_of(list(load_study(study).published)), configurations_of(study))
        for name, of_cells in cells.items():
            of_cells.update(of_study.index[of_study[name]])
    return points[["source"]].assign(**{name: points["cell"].isin(of_cells) for name, of_cells in cells.items()})


def dashes() -> int:
    """Return how many cells for a throughput have none."""
    cells = load()
    is_result = (cells["metric"] == "throughput") & (cells["role"] == "result")
    return int((is_result & cells["value"].isna()).sum())


def main() -> None:
    """Print a row for each study and for each source, and their sums."""
    throughputs = ("published throughputs", "with one planned", "with one that can run")
    coverages = list(map(coverage_of, studies_of_sources()))
    rows = [tuple(map(str, vars(coverage).values())) for coverage in coverages]
    print(text_table(("study", "configurations", "can run", *throughputs), rows))
    answers = answers_of_all_studies()
    counts = {name: answers[answers["source"] == name] for name in source_names()} | {"all": answers}
    source_rows = [
        (name, str(len(rows)), str(rows["planned"].sum()), str(rows["measurable"].sum()))
        for name, rows in counts.items()
    ]
    print(f"\n{text_table(('source', *throughputs), source_rows)}")
    print(f"\n{dashes()} more cells for a throughput have a dash.")


if __name__ == "__main__":
    main()
