"""Do logs say of themselves what is stated of them? What contradicts it is another job's log."""

import re
from collections.abc import Iterator, Mapping, Sequence

from dlperf_study.diagnostic import Diagnostic
from dlperf_study.ingest.identity import Stated
from dlperf_study.logs.parsed_log import Reading
from dlperf_study.study.parameter import Scalar

# Where a log says that its samples came from, beside what is stated of it.


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


def unstated_data(readings: Sequence[Reading], stated: Mapping[str, Scalar]) -> Iterator[Diagnostic]:
    """Yield that a log names an uncommon source of its samples, and nobody else does."""
    for reading in readings if "data_source" not in stated else ():
        for said, kinds in _claims(reading):
            if kinds in ({SYNTHETIC}, {DALI}):
                yield Diagnostic(str(reading.source), f"{said}, and nobody states its data_source")


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


# Programs that can also only predict: their rates are none of training.


#: Words of modes in which nothing is trained, unless they speak of training too: ``forward-only``, ``evaluation``.
_UNTRAINED, _TRAINED = ("forward", "eval", "infer", "predict"), "train"


def untrained(readings: Sequence[Reading]) -> Iterator[str]:
    """Yield which log says of itself that it trains nothing."""
    for reading in readings:
        mode = reading.facts.get("mode", "").lower()
        if _TRAINED not in mode and any(word in mode for word in _UNTRAINED):
            yield f"{reading.source}: it states mode {mode}, in which nothing is trained"


#: How programs say that they compute in reduced precision.
_REDUCED = ("use_fp16", "fp16", "use_amp", "amp")
#: Whole numbers that are compared where both the log and its identity state them.
_IF_STATED = ("image_size", "classes")


def contradictions(readings: Sequence[Reading], stated: Stated) -> list[str]:
    """Return every contradiction between what logs state and what is stated of them, each once."""
    return list(dict.fromkeys(said for reading in readings for said in _contradictions(reading, stated)))


def _contradictions(reading: Reading, stated: Stated) -> Iterator[str]:
    yield from _sizes(reading, _allowed(stated.parameters, stated.jobs_devices.world_size))
    for check in (_precision, _model, _sample_ratio, other_data):
        yield from check(reading, stated.parameters)


def _sizes(reading: Reading, sizes: Mapping[str, Sequence[int]]) -> Iterator[str]:
    for name, allowed in sizes.items():
        said = reading.fact(name)
        if said is not None and said not in allowed:
            expected = " or ".join(map(str, allowed))
            yield f"{reading.source}: it states {name} {said}, but its identity makes that {expected}"


def _allowed(stated: Mapping[str, Scalar], ranks: int) -> dict[str, list[int]]:
    """Return which whole numbers a log may state, by the name of the fact; ``ranks``: how many processes print."""
    names = ("nodes", "devices_per_node", "batch_per_device")
    nodes, devices_per_node, batch = (int(stated[name]) for name in names)
    world_size = nodes * devices_per_node
    batches = [batch, batch * devices_per_node, batch * world_size]
    return {
        "nodes": [nodes],
        "devices_per_node": [devices_per_node],
        "world_size": list(dict.fromkeys([world_size, ranks])),
        "batch_per_device": [batch],
        "global_batch": [batch * world_size],
        **{name: [int(stated[name])] for name in _IF_STATED if name in stated},
        "trainers": list(dict.fromkeys([nodes, world_size, ranks])),
        # Programs mean one device's, one node's or the job's with the same word.
        "batch_size": list(dict.fromkeys(batches)),
    }


def _precision(reading: Reading, stated: Mapping[str, Scalar]) -> Iterator[str]:
    reduced = stated["precision"] != "fp32"
    for name in _REDUCED:
        if reading.switch(name) is (not reduced):
            said = f"it states {name} {reading.facts[name].lower()}"
            yield f"{reading.source}: {said}, but its identity says precision {stated['precision']}"


def _model(reading: Reading, stated: Mapping[str, Scalar]) -> Iterator[str]:
    """Yield that the models are of different depths: names differ from program to program, their numbers don't."""
    said, asked = reading.facts.get("model", ""), str(stated["model"])
    depths, others = set(re.findall(r"\d+", said)), set(re.findall(r"\d+", asked))
    if depths and others and not depths & others:
        yield f"{reading.source}: it states model {said}, but its identity says {asked}"


def _sample_ratio(reading: Reading, stated: Mapping[str, Scalar]) -> Iterator[str]:
    said, asked = reading.facts.get("sample_ratio"), stated.get("sample_ratio")
    if said is not None and asked is not None and float(said) != float(asked):
        yield f"{reading.source}: it states sample_ratio {said}, but its identity says {asked}"
