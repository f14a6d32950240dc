"""Where a log says that its samples came from, beside what is stated of it."""

from collections.abc import Iterator, Mapping, Sequence

from dlperf_study.logs.complaint import Complaint
from dlperf_study.logs.reading import Reading
from dlperf_study.study.configuration import Scalar

#: Kinds of sources, which programs tell apart: made on the spot, read by DALI, read in any other way.
SYNTHETIC, DALI, READ = "synthetic", "dali", "read"
#: Programs that know no other data than what they make.
_ONLY_SYNTHETIC = ("horovod_synthetic",)

Claim = tuple[str, frozenset[str]]


def kind_of(data_source: str) -> str:
    """Return of which kind one of our data sources is."""
    return next((kind for kind in (SYNTHETIC, DALI) if data_source.startswith(kind)), READ)


def other_data(reading: Reading, stated: Mapping[str, Scalar]) -> Iterator[str]:
    """Yield that a log says its samples are of another kind than its identity says."""
    source = stated.get("data_source")
    for said, kinds in _claims(reading) if source else ():
        if kind_of(str(source)) not in kinds:
            yield f"{reading.source}: {said}, but its identity says data_source {source}"


def unstated_data(readings: Sequence[Reading], stated: Mapping[str, Scalar]) -> Iterator[Complaint]:
    """Yield that a log names an uncommon source of its samples, and nobody else does."""
    for reading in readings if "data_source" not in stated else ():
        for said, kinds in _claims(reading):
            if kinds in ({SYNTHETIC}, {DALI}):
                yield Complaint(str(reading.source), f"{said}, and nobody states its data_source")


def _claims(reading: Reading) -> Iterator[Claim]:
    """Yield what a log says in its own words, and which kinds of sources that can be."""
    facts = reading.facts
    if reading.format.name in _ONLY_SYNTHETIC:
        yield f"{reading.format.title} knows synthetic data only", frozenset({SYNTHETIC})
    if dali := facts.get("use_dali"):
        is_off = reading.switch("use_dali") is False
        yield f"it states use_dali {dali}", frozenset({SYNTHETIC, READ} if is_off else {DALI})
    if backend := facts.get("data_backend"):
        yield f"it states data_backend {backend}", frozenset({_backend(backend.lower())})
    if dataset := facts.get("dataset"):
        yield f"it states dataset {dataset}", frozenset({SYNTHETIC} if "(synthetic)" in dataset else {DALI, READ})


def _backend(name: str) -> str:
    """Return the kind of one of NVIDIA's backends; theirs of synthetic data is spelt ``syntetic``."""
    return DALI if name.startswith("dali") else SYNTHETIC if name.startswith("syn") else READ
