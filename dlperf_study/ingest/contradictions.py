"""Does a log contradict its metadata? Then it is the log of a different job."""

import re
from collections.abc import Iterator, Mapping, Sequence

from dlperf_study.diagnostic import Diagnostic
from dlperf_study.ingest.identity import LogMetadata
from dlperf_study.logs.parsed_log import ParsedLog
from dlperf_study.study.parameter import Scalar
from dlperf_study.study.precision import FULL

#: Kinds of data sources that programs tell apart: generated, read by DALI, read in any other way.
SYNTHETIC, DALI, READ = "synthetic", "dali", "read"
#: Modes in which nothing is trained contain one of these, and not ``train``: ``forward-only``, ``evaluation``.
_UNTRAINED_MODES = ("forward", "eval", "infer", "predict")
#: How programs name the switch of reduced precision.
_REDUCED_PRECISION = ("use_fp16", "fp16", "use_amp", "amp")
#: Integers that are compared if both the log and its metadata state them.
_OPTIONAL_SIZES = ("image_size", "classes")


def contradictions(logs: Sequence[ParsedLog], metadata: LogMetadata) -> list[str]:
    """Return every contradiction between the facts in logs and their metadata, each once."""
    allowed_sizes = _allowed_sizes(metadata)
    messages: list[str] = []
    for log in logs:
        for name, allowed in allowed_sizes.items():
            size = log.integer_fact(name)
            if size is not None and size not in allowed:
                expected = " or ".join(map(str, allowed))
                messages.append(f"{log.source}: states {name} {size}, but its identity says {expected}")
        messages += _contradictory_parameters(log, metadata.parameters)
    return list(dict.fromkeys(messages))


def untrained(logs: Sequence[ParsedLog]) -> Iterator[str]:
    """Yield which logs state a mode in which nothing is trained: their rates are none of training."""
    for log in logs:
        mode = log.facts.get("mode", "").lower()
        if "train" not in mode and any(part in mode for part in _UNTRAINED_MODES):
            yield f"{log.source}: states mode {mode}, in which nothing is trained"


def unstated_data(logs: Sequence[ParsedLog], parameters: Mapping[str, Scalar]) -> Iterator[Diagnostic]:
    """Yield which logs state an uncommon data source that their metadata do not."""
    if "data_source" in parameters:
        return
    for log in logs:
        for statement, kinds in _data_sources(log):
            if kinds in ({SYNTHETIC}, {DALI}):
                yield Diagnostic(str(log.source), f"{statement}, and its data_source is not stated")


def _allowed_sizes(metadata: LogMetadata) -> dict[str, list[int]]:
    """Return the integers that a log may state, by the name of the fact."""
    parameters, ranks = metadata.parameters, metadata.job_size.world_size
    nodes, devices_per_node = int(parameters["nodes"]), int(parameters["devices_per_node"])
    batch, world_size = int(parameters["batch_per_device"]), metadata.devices
    # Devices that share a model also share its samples: a log may then state any part of the batch.
    batches = {
        "batch_per_device": [batch],
        # Programs mean the batch of one device, of one node or of the job.
        "batch_size": list(dict.fromkeys([batch, batch * devices_per_node, batch * world_size])),
    }
    return {
        "nodes": [nodes],
        "devices_per_node": [devices_per_node],
        "world_size": list(dict.fromkeys([world_size, ranks])),
        "global_batch": [metadata.global_batch],
        **{name: [int(parameters[name])] for name in _OPTIONAL_SIZES if name in parameters},
        "trainers": list(dict.fromkeys([nodes, world_size, ranks])),
        **(batches if batch else {}),
    }


def _contradictory_parameters(log: ParsedLog, parameters: Mapping[str, Scalar]) -> Iterator[str]:
    """Yield how precision, model, sample ratio and data differ between a log and its metadata."""
    precision = parameters["precision"]
    is_reduced = precision not in FULL
    for name in _REDUCED_PRECISION:
        if log.switch(name) is (not is_reduced):
            value = log.facts[name].lower()
            yield f"{log.source}: states {name} {value}, but its identity says precision {precision}"
    # Names of models differ from program to program; the depths in them, which are numbers, don't.
    log_model, model = log.facts.get("model", ""), str(parameters["model"])
    log_depths, depths = set(re.findall(r"\d+", log_model)), set(re.findall(r"\d+", model))
    if log_depths and depths and not log_depths & depths:
        yield f"{log.source}: states model {log_model}, but its identity says {model}"
    log_ratio, ratio = log.facts.get("sample_ratio"), parameters.get("sample_ratio")
    if log_ratio is not None and ratio is not None and float(log_ratio) != float(ratio):
        yield f"{log.source}: states sample_ratio {log_ratio}, but its identity says {ratio}"
    data_source = str(parameters.get("data_source") or "")
    kind = next((kind for kind in (SYNTHETIC, DALI) if data_source.startswith(kind)), READ)
    for statement, kinds in _data_sources(log):
        if data_source and kind not in kinds:
            yield f"{log.source}: {statement}, but its identity says data_source {data_source}"


def _data_sources(log: ParsedLog) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the statements of a log about its data, each with the kinds of sources that it allows."""
    if log.format.synthetic_data_only:
        yield f"{log.format.title} has synthetic data only", frozenset({SYNTHETIC})
    if dali := log.facts.get("use_dali"):
        is_off = log.switch("use_dali") is False
        yield f"states use_dali {dali}", frozenset({SYNTHETIC, READ} if is_off else {DALI})
    if backend := log.facts.get("data_backend"):
        # NVIDIA's names; the one of synthetic data is spelt ``syntetic``.
        name = backend.lower()
        kind = DALI if name.startswith("dali") else SYNTHETIC if name.startswith("syn") else READ
        yield f"states data_backend {backend}", frozenset({kind})
    if dataset := log.facts.get("dataset"):
        yield f"states dataset {dataset}", frozenset({SYNTHETIC} if "(synthetic)" in dataset else {DALI, READ})
