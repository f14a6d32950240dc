"""Checks whether a log is complete and fits its metadata.

Lost lines and steps are an error, unless chance explains so few.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dlperf_study.core.arrays import Floats, running_median
from dlperf_study.core.errors import Diagnostic, Severity
from dlperf_study.logs.blocks import Blocks
from dlperf_study.logs.metadata import LogMetadata
from dlperf_study.logs.parsed_log import ParsedLog, StepIndex
from dlperf_study.study.parameter import Scalar
from dlperf_study.study.precision import FULL

#: A log that lost a larger share of its lines is no sample of its run; chance loses so few of them.
_ALLOWED_SHARE, _ALLOWED_LINES = 0.05, 3
#: How many distances between steps tell the usual one; a larger one by this factor is a gap.
_NEIGHBOURS, _GAP_FACTOR = 9, 1.5
#: Kinds of data loaders that programs tell apart: generated, read by DALI, read in any other way.
SYNTHETIC, DALI, READ = "synthetic", "dali", "read"
#: Modes in which nothing is trained contain one of these, and not ``train``: ``forward-only``, ``evaluation``.
_UNTRAINED_MODES = ("forward", "eval", "infer", "predict")
#: How programs name the switch of reduced precision.
_REDUCED_PRECISION = ("use_fp16", "fp16", "use_amp", "amp")
#: Integers that are compared if both the log and its metadata state them.
_OPTIONAL_SIZES = ("image_size", "classes")


def completeness_diagnostics(log: ParsedLog, blocks: Blocks, unusable: int, is_cut: bool) -> Iterator[Diagnostic]:
    """Yield the missing parts of a log.

    ``unusable``: lines of its format that could not be used; ``is_cut``: the last of them has no newline.
    """
    errors = []
    if blocks.damage:
        errors.append(f"truncated: its bytes end in an error ({blocks.damage}) after line {blocks.lines}")
    if blocks.first_zero_line:
        errors.append(f"damaged: zero bytes at line {blocks.first_zero_line}")
    if is_cut:
        end = f"its last line, {blocks.lines}, has no newline and may have lost digits or more"
        errors.append(f"truncated: {end}; if it is complete, add a newline")
    errors += _unplanned_end(log)
    lines = len(log.records) + unusable
    if exceeds_chance(unusable, lines):
        errors.append(f"{unusable} of its {lines} lines could not be used: the other lines may not represent the run")
    for error in errors:
        yield Diagnostic(str(log.source), error, Severity.ERROR)
    yield from _missing_steps(log)
    # People often publish a part of a log.
    closing = log.format.closing_metric
    if closing and not len(log.series(closing)):
        absence = f"it has no {closing.replace('_', ' ')}, which {log.format.title} prints when it is done"
        yield Diagnostic(str(log.source), f"{absence}: the run ended early, or the log is incomplete")


def exceeds_chance(count: int, total: int) -> bool:
    """Return whether chance does not explain so many missing lines."""
    return count > max(_ALLOWED_LINES, _ALLOWED_SHARE * total)


def _unplanned_end(log: ParsedLog) -> Iterator[str]:
    """Yield a diagnostic if the log has another number of steps than planned."""
    planned = log.integer_fact("steps_planned")
    steps = log.records.step[log.records.training]
    distances = np.diff(steps[steps >= 0])
    if not planned or not (distances > 0).any():
        return
    usual = np.median(distances[distances > 0])
    if steps.max() + usual < planned:
        yield f"truncated: its last step is {steps.max()} of {planned} planned ones"
    if steps.max() > planned + usual:
        yield f"inconsistent: it has step {steps.max()}, but planned {planned} steps"


def _missing_steps(log: ParsedLog) -> Iterator[Diagnostic]:
    """Yield the number of missing steps between others."""
    index = log.throughput_steps
    if np.count_nonzero(index.epoch[1:] == index.epoch[:-1]) < _NEIGHBOURS:
        return
    distances = _step_distances(index)
    if distances.max() <= _GAP_FACTOR * distances.min():
        return
    usual = running_median(distances, _NEIGHBOURS)
    missing = np.where(distances > _GAP_FACTOR * usual, np.round(distances / usual) - 1, 0).astype(int)
    if missing.any():
        count = int(missing.sum())
        total = count + index.step.size
        last_before = index.step[np.argmax(missing > 0)]
        message = f"missing lines: {count} of {total} steps are missing, the first after step {last_before}"
        severity = Severity.ERROR if exceeds_chance(count, total) else Severity.WARNING
        yield Diagnostic(str(log.source), message, severity)


def _step_distances(index: StepIndex) -> Floats:
    """Return the distances of steps, across epochs that count anew."""
    distances = np.diff(index.step).astype(np.float64)
    same_epoch = index.epoch[1:] == index.epoch[:-1]
    if same_epoch.all():
        return distances
    usual = float(np.median(distances[same_epoch]))
    epoch_starts = np.insert(np.flatnonzero(~same_epoch) + 1, 0, 0)
    late = index.step[1:] - index.step[epoch_starts].min()
    # The first line of an epoch may be anywhere in an interval that began before it.
    late = np.where(late > _GAP_FACTOR * usual, late, 0) + usual
    counts_from_start = ~same_epoch & (distances <= 0)
    return np.asarray(np.where(counts_from_start, late, distances), dtype=np.float64)


def contradictions(logs: Sequence[ParsedLog], metadata: LogMetadata) -> list[str]:
    """Return each contradiction between facts and metadata once."""
    allowed_sizes = _allowed_sizes(metadata)
    messages: list[str] = []
    for log in logs:
        for name, allowed in allowed_sizes.items():
            size = log.integer_fact(name)
            if size is not None and size not in allowed:
                expected = " or ".join(map(str, allowed))
                messages.append(f"{log.source}: states {name} {size}, but its metadata say {expected}")
        messages += _contradictory_parameters(log, metadata.parameters)
    return list(dict.fromkeys(messages))


def untrained(logs: Sequence[ParsedLog]) -> Iterator[str]:
    """Yield logs of a mode without training."""
    for log in logs:
        mode = log.facts.get("mode", "").lower()
        if "train" not in mode and any(part in mode for part in _UNTRAINED_MODES):
            yield f"{log.source}: states mode {mode}, which is not training"


def unstated_data(logs: Sequence[ParsedLog], parameters: Mapping[str, Scalar]) -> Iterator[Diagnostic]:
    """Yield logs with an uncommon data loader that metadata omit."""
    if "data_loader" in parameters:
        return
    for log in logs:
        for statement, kinds in _data_loaders(log):
            if kinds in ({SYNTHETIC}, {DALI}):
                yield Diagnostic(str(log.source), f"{statement}, but its metadata have no data_loader")


def _allowed_sizes(metadata: LogMetadata) -> dict[str, list[int]]:
    """Return the allowed integers of each fact."""
    parameters, ranks = metadata.parameters, metadata.job_size.world_size
    nodes, devices_per_node = int(parameters["nodes"]), int(parameters["devices_per_node"])
    batch, world_size = int(parameters["batch_per_device"]), metadata.devices
    sizes = {
        "nodes": [nodes],
        "devices_per_node": [devices_per_node],
        "world_size": list(dict.fromkeys([world_size, ranks])),
        "global_batch": [metadata.global_batch],
    }
    for name in _OPTIONAL_SIZES:
        if name in parameters:
            sizes[name] = [int(parameters[name])]
    sizes["trainers"] = list(dict.fromkeys([nodes, world_size, ranks]))
    # Devices that share a model also share its samples: a log may then state any part of the batch.
    if batch:
        sizes["batch_per_device"] = [batch]
        # Programs mean the batch of one device, of one node or of the job.
        sizes["batch_size"] = list(dict.fromkeys([batch, batch * devices_per_node, batch * world_size]))
    return sizes


def _contradictory_parameters(log: ParsedLog, parameters: Mapping[str, Scalar]) -> Iterator[str]:
    """Yield differences in precision, model, sample ratio and data."""
    precision = parameters["precision"]
    is_reduced = precision not in FULL
    for name in _REDUCED_PRECISION:
        if log.switch(name) is (not is_reduced):
            value = log.facts[name].lower()
            yield f"{log.source}: states {name} {value}, but its metadata say precision {precision}"
    # Names of models differ from program to program; the depths in them, which are numbers, don't.
    log_model, model = log.facts.get("model", ""), str(parameters["model"])
    log_depths, depths = set(re.findall(r"\d+", log_model)), set(re.findall(r"\d+", model))
    if log_depths and depths and not log_depths & depths:
        yield f"{log.source}: states model {log_model}, but its metadata say {model}"
    log_ratio, ratio = log.facts.get("sample_ratio"), parameters.get("sample_ratio")
    if log_ratio is not None and ratio is not None and float(log_ratio) != float(ratio):
        yield f"{log.source}: states sample_ratio {log_ratio}, but its metadata say {ratio}"
    data_loader = str(parameters.get("data_loader") or "")
    kind = next((kind for kind in (SYNTHETIC, DALI) if data_loader.startswith(kind)), READ)
    for statement, kinds in _data_loaders(log):
        if data_loader and kind not in kinds:
            yield f"{log.source}: {statement}, but its metadata say data_loader {data_loader}"


def _data_loaders(log: ParsedLog) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield statements about data, with the data loaders they allow."""
    if log.format.synthetic_data_only:
        yield f"{log.format.title} has synthetic data only", frozenset({SYNTHETIC})
    if dali := log.facts.get("use_dali"):
        kinds = {DALI}
        if log.switch("use_dali") is False:
            kinds = {SYNTHETIC, READ}
        yield f"states use_dali {dali}", frozenset(kinds)
    if backend := log.facts.get("data_backend"):
        kind = READ
        if backend.lower().startswith("dali"):
            kind = DALI
        elif backend.lower().startswith("syn"):
            # NVIDIA spells it ``syntetic``.
            kind = SYNTHETIC
        yield f"states data_backend {backend}", frozenset({kind})
    if dataset := log.facts.get("dataset"):
        kinds = {DALI, READ}
        if "(synthetic)" in dataset:
            kinds = {SYNTHETIC}
        yield f"states dataset {dataset}", frozenset(kinds)
