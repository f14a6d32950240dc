"""An archive of logs of any size, made from the samples of the tests: every format has the same share of its bytes.

A file repeats one sample: its steps continue, and the last digits of its numbers are drawn at random. Next to it is a
``configuration.json`` that agrees with the facts in the sample, so that its run counts if the format prints a rate.
"""

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path

from dlperf_study.core.paths import PROJECT
from dlperf_study.logs.format import Line
from dlperf_study.logs.formats import all_formats, load
from dlperf_study.logs.log_reader import read_log
from dlperf_study.logs.parsed_log import ParsedLog
from dlperf_study.logs.printed import MetricScope
from dlperf_study.logs.rank_checks import ranks_seen
from dlperf_study.logs.text_lines import LinePattern, compile_line

SAMPLES = PROJECT / "tests" / "logs" / "samples"
#: The one sample without the name of a format: it contains two, and there is no other sample of the second.
READ_AS = {"two_formats_real.log": "oneflow_bert"}
#: After how many variants with different digits a sample repeats itself; a prime, so that no other period divides it.
VARIANTS = 101
#: Lines with a plan or the end of a run, which contradict a log that continues.
ENDS = re.compile(rb"max_iter|total_steps|Num batches|Summary|run_stop")
JSON_STEP = re.compile(rb'"step": (?:\[(?P<epoch>\d+), )?(?P<step>\d+)')
JSON_NUMBER = re.compile(rb'(?:total_ips|imgs_sec|loss|throughput)": (\d+\.\d+)')


@dataclass(frozen=True)
class Sample:
    """One sample: the format it is of, and which run it states to be."""

    path: Path
    format: str
    configuration_id: dict[str, str | int]


def samples() -> list[list[Sample]]:
    """Return the samples of each format that has large enough ones."""
    every_sample = [sample for path in sorted(SAMPLES.glob("*.log")) for sample in _samples_of(path)]
    by_format: dict[str, list[Sample]] = {format_.name: [] for format_ in all_formats()}
    for sample in every_sample:
        by_format[sample.format].append(sample)
    return [samples_of_format for samples_of_format in by_format.values() if samples_of_format]


def write_archive(folder: Path, megabytes: float, files: int) -> dict[Path, str]:
    """Write logs of some size altogether; return the format of each."""
    kinds = samples()
    shares = [len(range(kind, files, len(kinds))) for kind in range(len(kinds))]
    written = {}
    for number in range(files):
        turn, kind = divmod(number, len(kinds))
        sample = kinds[kind][turn % len(kinds[kind])]
        size = megabytes * 1e6 / min(files, len(kinds)) / shares[kind]
        written[_write(sample, folder / f"{number:04d}", size)] = sample.format
    return written


def _write(sample: Sample, folder: Path, size: float) -> Path:
    folder.mkdir()
    (folder / "configuration.json").write_text(json.dumps({**sample.configuration_id, "seed": int(folder.name)}))
    path = folder / "run_1.log"
    with path.open("wb") as file:
        for text in _cycles(sample, int(folder.name)):
            if file.tell() >= size:
                return path
            file.write(text)
    raise AssertionError


def _samples_of(path: Path) -> Iterator[Sample]:
    names = [format_.name for format_ in all_formats() if READ_AS.get(path.name, path.name).startswith(format_.name)]
    for name in names[-1:]:
        yield Sample(path, name, _identity(read_log(path, name)))


def _identity(log: ParsedLog) -> dict[str, str | int]:
    """Return the metadata with which a log counts: the sizes are those that it states, or that its numbers give."""
    devices = log.integer_fact("world_size") or ranks_seen([log])
    devices_per_node = log.integer_fact("devices_per_node") or devices
    stated_batch = log.integer_fact("batch_per_device") or log.integer_fact("batch_size")
    batch = stated_batch or _printed_batch(log, devices) or 128
    reduced = any(log.switch(name) for name in ("fp16", "use_fp16", "amp"))
    return {
        "framework": log.format.name,
        "model": log.facts.get("model", "resnet50"),
        "nodes": max(1, devices // devices_per_node),
        "devices_per_node": devices_per_node,
        "parameter_servers": 0,
        "batch_per_device": batch,
        "precision": "amp_fp16" if reduced else "fp32",
        "tokens_per_sample": 512,
        "format": log.format.name,
    }


def _printed_batch(log: ParsedLog, devices: int) -> int:
    """Return the batch of one device, from the rate and the time of the last line; 0 if it does not print both."""
    rates, seconds = (log.records.values.get(name) for name in ("throughput", "step_seconds"))
    if rates is None or seconds is None:
        return 0
    batch = round(float((rates * seconds)[-1]))
    return batch // devices if log.format.metrics["throughput"].scope is MetricScope.JOB else batch


def _cycles(sample: Sample, seed: int) -> Iterator[bytes]:
    """Yield the text of a sample endlessly: one epoch, its steps continue, the variants in an order of its own."""
    variants, steps = _variants(sample.path, sample.format)
    for cycle in count():
        variant = variants[(seed + cycle * (1 + seed % (VARIANTS - 1))) % VARIANTS]
        yield variant % tuple(1 + cycle * (max(steps, default=0) + 1) + step for step in steps)


@cache
def _variants(path: Path, format_name: str) -> tuple[list[bytes], list[int]]:
    """Return variants of a sample, with different digits and ``%d`` for its steps; and the index of each step."""
    draw = random.Random(0)
    kinds = [compile_line(line) for line in load(format_name).lines if isinstance(line, Line) and line.training]
    lines = [line for line in path.read_bytes().splitlines() if not ENDS.search(line)]
    keys = [tuple(line[slice(*span)] for span in _position_spans(kinds, line).values()) for line in lines]
    step_index = {key: index for index, key in enumerate(dict.fromkeys(filter(None, keys)))}
    variants = [b"".join(_template(kinds, line, draw) for line in lines) for _ in range(VARIANTS)]
    return variants, [step_index[key] for key in keys if key]


def _template(kinds: list[LinePattern], line: bytes, draw: random.Random) -> bytes:
    """Return a line with ``%d`` for its step, and different last digits of its numbers."""
    variant = bytearray(line)
    for position in _last_digits(kinds, line):
        variant[position] = draw.choice(b"0123456789")
    parts, end = [], 0
    for name, span in sorted(_position_spans(kinds, line).items(), key=lambda item: item[1]):
        parts += [bytes(variant[end : span[0]]).replace(b"%", b"%%"), b"%d" if name == "step" else b"1"]
        end = span[1]
    return b"".join([*parts, bytes(variant[end:]).replace(b"%", b"%%"), b"\n"])


def _position_spans(kinds: list[LinePattern], line: bytes) -> dict[str, tuple[int, int]]:
    """Return where the step and the epoch are in a line that has a step."""
    patterns = [kind.expression for kind in kinds if "step" in kind.groups] if kinds else [JSON_STEP]
    match = next((match for pattern in patterns if (match := pattern.search(line)) and match["step"]), None)
    names = [name for name in ("epoch", "step") if match and name in match.groupdict() and match[name]]
    return {name: match.span(name) for name in names} if match else {}


def _last_digits(kinds: list[LinePattern], line: bytes) -> Iterator[int]:
    """Yield where the last digits of the metrics of a line are."""
    matches = ((kind.expression.search(line), kind.metrics) for kind in kinds)
    ends = [match.end(group) for match, groups in matches if match for group in groups if match[group]]
    ends += [match.end(1) for match in JSON_NUMBER.finditer(line) if not kinds]
    yield from (end - 1 for end in ends if line[end - 1 : end].isdigit())
