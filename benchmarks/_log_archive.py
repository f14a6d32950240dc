"""An archive of logs of any size, made from the samples of the tests: every format has a like share of its bytes.

A file is one sample again and again: its steps counted on, the last digits of its numbers drawn anew. Beside it lies
the ``configuration.json`` that its own statements allow, so that its run counts wherever the format prints a rate.
"""

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path

from dlperf_study.logs.completeness import ranks_seen
from dlperf_study.logs.format import TRAINING, Line
from dlperf_study.logs.formats import all_formats, load
from dlperf_study.logs.log_reader import read_log
from dlperf_study.logs.parsed_log import ParsedLog
from dlperf_study.logs.text_lines import LinePattern, compile_line
from dlperf_study.paths import PROJECT

SAMPLES = PROJECT / "tests" / "logs" / "samples"
#: The one sample that no format gives its name: it is of two, and of the second there is no other.
READ_AS = {"two_formats_real.log": "oneflow_bert"}
#: How often a sample comes with other digits before it repeats itself; a prime, so that it falls in step with nothing.
VARIANTS = 101
#: What a plan or the last line of a run says can't stand in a log that goes on.
ENDS = re.compile(rb"max_iter|total_steps|Num batches|Summary|run_stop")
JSON_STEP = re.compile(rb'"step": (?:\[(?P<epoch>\d+), )?(?P<step>\d+)')
JSON_NUMBER = re.compile(rb'(?:total_ips|imgs_sec|loss|throughput)": (\d+\.\d+)')


@dataclass(frozen=True)
class Sample:
    """One sample: the format it is of, and identify_logs run it states to be."""

    path: Path
    format: str
    identity: dict[str, str | int]


def samples() -> list[list[Sample]]:
    """Return the samples of each format."""
    found = [sample for path in sorted(SAMPLES.glob("*.log")) for sample in _samples_of(path)]
    return [[one for one in found if one.format == format_.name] for format_ in all_formats()]


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
    (folder / "configuration.json").write_text(json.dumps({**sample.identity, "seed": int(folder.name)}))
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
    """Return what a log must state to be counted: the sizes are those that it says itself, or that its numbers make."""
    devices = log.fact("world_size") or ranks_seen([log])
    node = log.fact("devices_per_node") or devices
    rates, seconds = (log.records.values.get(name) for name in ("throughput", "step_seconds"))
    made = round(float((rates * seconds)[-1])) if rates is not None and seconds is not None else 0
    whole = made // devices if log.format.name == "plsc_2_4" else made
    batch = log.fact("batch_per_device") or log.fact("batch_size") or whole or 128
    reduced = any(log.switch(name) for name in ("fp16", "use_fp16", "amp"))
    return {
        "framework": log.format.name,
        "model": log.facts.get("model", "resnet50"),
        "nodes": max(1, devices // node),
        "devices_per_node": node,
        "servers": 0,
        "batch_per_device": batch,
        "precision": "amp_fp16" if reduced else "fp32",
        "tokens_per_sample": 512,
        "format": log.format.name,
    }


def _cycles(sample: Sample, seed: int) -> Iterator[bytes]:
    """Yield the text of a sample without end: one epoch, its steps counted on, in an order of its own."""
    variants, places = _variants(sample.path, sample.format)
    for cycle in count():
        variant = variants[(seed + cycle * (1 + seed % (VARIANTS - 1))) % VARIANTS]
        yield variant % tuple(1 + cycle * (max(places, default=0) + 1) + place for place in places)


@cache
def _variants(path: Path, format_name: str) -> tuple[list[bytes], list[int]]:
    """Return a sample with places for its steps, often and with other digits; and which of its steps stands where."""
    draw = random.Random(0)
    kinds = [
        compile_line(line) for line in load(format_name).lines if isinstance(line, Line) and line.window == TRAINING
    ]
    lines = [line for line in path.read_bytes().splitlines() if not ENDS.search(line)]
    keys = [tuple(line[slice(*span)] for span in _places(kinds, line).values()) for line in lines]
    places = {key: place for place, key in enumerate(dict.fromkeys(filter(None, keys)))}
    variants = [b"".join(_template(kinds, line, draw) for line in lines) for _ in range(VARIANTS)]
    return variants, [places[key] for key in keys if key]


def _template(kinds: list[LinePattern], line: bytes, draw: random.Random) -> bytes:
    """Return a line with a place for its step, and other last digits of its numbers."""
    other = bytearray(line)
    for place in _last_digits(kinds, line):
        other[place] = draw.choice(b"0123456789")
    parts, end = [], 0
    for name, span in sorted(_places(kinds, line).items(), key=lambda item: item[1]):
        parts += [bytes(other[end : span[0]]).replace(b"%", b"%%"), b"%d" if name == "step" else b"1"]
        end = span[1]
    return b"".join([*parts, bytes(other[end:]).replace(b"%", b"%%"), b"\n"])


def _places(kinds: list[LinePattern], line: bytes) -> dict[str, tuple[int, int]]:
    """Return where the step stands in a line that has one, and the epoch."""
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
