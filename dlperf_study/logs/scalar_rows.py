"""Scalars of experiment trackers as lines, and the meaning of their names.

Programs choose the names; only unambiguous and usual names are known. Trackers store Protocol Buffers messages.
"""

import json
import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dlperf_study.core.errors import LogError
from dlperf_study.logs.printed import (
    JOB_STEP,
    JOB_THROUGHPUT,
    JOB_TOKENS,
    LOSS,
    UNITLESS_THROUGHPUT,
    MetricScope,
    PrintedMetric,
)

#: Wire types; the struct format of those of fixed size.
_VARINT, _DOUBLE, _BYTES, _FLOAT = 0, 1, 2, 5
_FIXED = {_DOUBLE: "<d", _FLOAT: "<f"}
#: How many bits an integer may have, in bytes of seven.
_LONGEST_VARINT = 70
#: A longer record of a tracker is damage, or was made to fill the memory.
LONGEST_RECORD = 1 << 26
#: Of each device, as programs that train language models record it.
DEVICE_TOKEN_THROUGHPUT = PrintedMetric("device_token_throughput", "tokens/s", MetricScope.DEVICE)
#: What a log must have one of, the best first.
THROUGHPUTS = (JOB_THROUGHPUT, JOB_STEP, JOB_TOKENS, DEVICE_TOKEN_THROUGHPUT, UNITLESS_THROUGHPUT)
THROUGHPUT_NAMES = tuple(metric.name for metric in THROUGHPUTS)
_MEANINGS = (
    (re.compile("(?:samples|images|imgs|examples|sequences)_per_s(?:ec|econd)?"), JOB_THROUGHPUT.name, 1.0),
    (re.compile("tokens_per_s(?:ec|econd)?"), JOB_TOKENS.name, 1.0),
    (re.compile("tokens_per_s(?:ec|econd)?_per_(?:device|gpu)"), DEVICE_TOKEN_THROUGHPUT.name, 1.0),
    (re.compile("throughput"), UNITLESS_THROUGHPUT.name, 1.0),
    (re.compile("(?:step|iteration)_(?:time|seconds|time_s(?:ec|econds)?)"), JOB_STEP.name, 1.0),
    (re.compile("(?:step|iteration)_(?:time_)?ms"), JOB_STEP.name, 1e-3),
    (re.compile("(?:train(?:ing)?_)?loss"), LOSS.name, 1.0),
)
#: A part of a tag that says that its number is not that of the whole job, or not of training.
_OTHER = re.compile(r"(?:eval|val|valid|validation|test|dev|device|gpu|rank|worker)(?:[_\d].*)?")
_KNOWN = (
    "samples_per_sec, images_per_second, images/sec, step_time, step_time_ms, tokens_per_sec, tokens_per_sec_per_gpu, "
    "throughput"
)


class DamagedRecordError(OSError):
    """A damaged record; the message names its first byte."""


def fields(message: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """Yield the fields of a message; raises ValueError, IndexError or struct.error."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        kind = key & 7
        if kind == _VARINT:
            value, position = _varint(message, position)
            yield key >> 3, value
        elif kind == _BYTES:
            length, position = _varint(message, position)
            if position + length > len(message):
                raise ValueError("a field is longer than its message")
            yield key >> 3, message[position : position + length]
            position += length
        elif kind in _FIXED:
            [fixed] = struct.unpack_from(_FIXED[kind], message, position)
            yield key >> 3, shortest(np.float32(fixed)) if kind == _FLOAT else fixed
            position += struct.calcsize(_FIXED[kind])
        else:
            raise ValueError(f"unknown wire type {kind}")


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """Return an integer and the next position; raises ValueError above 64 bits."""
    value = shift = 0
    while shift < _LONGEST_VARINT:
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
    raise ValueError("an integer has more than 64 bits")


def shortest(number: np.floating[Any]) -> float:
    """Return the shortest number that equals a single-precision one."""
    return float(str(number))


@dataclass(frozen=True)
class Scalars:
    """Scalars by tag, recorded at ``wall_time`` (Unix time in seconds)."""

    step: int
    wall_time: float
    values: dict[str, float]


def scalar_rows(name: str, marker: str, records: Iterable[Scalars]) -> Iterator[bytes]:
    """Yield a JSON line after ``marker`` per record with scalars."""
    metrics: dict[str, str] = {}
    for scalars in records:
        for tag in scalars.values:
            if tag not in metrics:
                metrics[tag], _ = tag_meaning(tag) or ("", 1.0)
        if scalars.values:
            yield f"{marker}{json.dumps(asdict(scalars))}\n".encode()
    tags: dict[str, str] = {}
    for tag, metric in metrics.items():
        if metric and metric in tags:
            both = f"the tags {tags[metric]} and {tag} are both {metric}"
            raise LogError(f"{name}: {both}; keep one of them")
        tags[metric] = tag
    if tags.keys().isdisjoint(THROUGHPUT_NAMES):
        there_are = ", ".join(metrics) or "none"
        reason = "no tag is a known throughput or step time"
        raise LogError(f"{name}: {reason}; its tags: {there_are}; known endings: {_KNOWN}")


def tag_meaning(tag: str) -> tuple[str, float] | None:
    """Return metric and factor of a tag, or None."""
    name = re.sub("/s(ec|econd)?$", r"_per_s\1", tag.lower())
    *folders, last = re.sub(r"[-. ]", "_", name).split("/")
    if any(map(_OTHER.fullmatch, (*folders, last))):
        return None
    for pattern, metric, factor in _MEANINGS:
        if pattern.fullmatch(last):
            return metric, factor
    return None
