"""The plan of ingested logs: what was stated, and the baselines without which there is no speedup."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from dlperf_study.ingest.identity import UNSTATED, Extras, Identity, Stated
from dlperf_study.plan.plan import Entry, Plan, varying
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.grid import format_values
from dlperf_study.study.parameter import Scalar

#: What printed rates can answer; what part of a step is communication they don't say.
QUESTIONS = ("scaling", "audit", "quality")
_NO_LOG = "no log of it is among those ingested"


def ingested_plan(identity: Identity, folder: Path) -> Plan:
    """Return the plan of an identity: its configurations, and declared baselines that it has no log of."""
    entries = list(_entries(identity))
    configurations = [entry.configuration for entry in entries]
    return Plan(
        study=identity.study,
        cluster=UNSTATED,
        title=f"Logs ingested from {folder.name}",
        about=f"Rates that other programs printed; declared baseline: {format_values(identity.baseline)}.",
        scaling=identity.scaling,
        questions=QUESTIONS,
        factors=varying(configurations, ()),
        published=(),
        quick=False,
        entries=tuple(entries),
        ingested_from=str(folder),
    )


def baseline_of(stated: Stated, identity: Identity) -> Stated:
    """Return what the identity declares as the baseline of a configuration: its own logs, if it has any, elsewhere."""
    values: dict[str, Scalar] = {**stated.parameters, **identity.baseline}
    if identity.scaling == "strong" and "batch_per_device" not in identity.baseline:
        batch, devices = _devices(stated.parameters), _devices(values)
        values["batch_per_device"] = int(stated.parameters["batch_per_device"]) * batch // devices
    return Stated(values, (), stated.source, Extras())


def _entries(identity: Identity) -> Iterator[Entry]:
    """Yield an entry per configuration, in order, then those of missing baselines."""
    known = {stated.key: stated.configuration(identity.study) for stated in identity.configurations}
    missing: dict[str, Entry] = {}
    for stated in identity.configurations:
        wanted = baseline_of(stated, identity)
        baseline = known.get(wanted.key) or wanted.configuration(identity.study)
        if wanted.key not in known:
            missing[baseline.identity] = _absent(baseline, wanted)
        yield Entry(stated.configuration(identity.study), baseline.identity, unstated=stated.unstated)
    yield from missing.values()


def _absent(baseline: Configuration, wanted: Stated) -> Entry:
    return Entry(replace(baseline, repeats=0), baseline.identity, _NO_LOG, unstated=wanted.unstated)


def _devices(parameters: Mapping[str, Scalar]) -> int:
    return int(parameters["nodes"]) * int(parameters["devices_per_node"])
