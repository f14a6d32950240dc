"""Peaks of devices by number format: as a cluster file gives them, and as data sheets print them.

``device_peaks.csv`` has one row a device, with FLOP/s of dense matrices and the data sheet. A name that is part
of another one comes after it; a format that a device has no units for is empty.
"""

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidatorFunctionWrapHandler, WrapValidator

from dlperf_study.study.precision import COMPUTED_IN, canonical_precision
from dlperf_study.study.validation import Section

_TABLE = Path(__file__).parent / "device_peaks.csv"
#: The names of number formats in the table and in a cluster file.
EIGHT_BITS = "fp8"
FORMATS = ("fp32", "tf32", "fp16", "bf16", EIGHT_BITS)
FROM_CLUSTER_FILE = "the cluster file"
#: A part of a GPU has a part of its units, and no data sheet.
_PARTITION = re.compile(r"\bMIG\b")
#: What follows the name of a device in that of another one.
_NAMESAKES = r"(?! (?:Ti|SUPER|D|Mobile|Laptop|Max-Q)\b)"

#: A device as slow or as fast is a typing error.
PeakFlops = Annotated[float, Field(ge=1e6, le=1e18)]


class PeaksByFormat(Section):
    """FLOP/s of one device by number format."""

    fp32: PeakFlops | None = None
    tf32: PeakFlops | None = None
    fp16: PeakFlops | None = None
    bf16: PeakFlops | None = None
    fp8: PeakFlops | None = None


#: The peaks that a cluster file gives: FLOP/s in every format, or by format.
PeaksOfFile = float | Mapping[str, float]


def number_or(by_format: Any) -> WrapValidator:
    """Return a validator of one number, or of numbers by format."""

    @cache
    def mapping() -> TypeAdapter[Any]:
        return TypeAdapter(by_format)

    def check(value: Any, as_number: ValidatorFunctionWrapHandler) -> Any:
        if not isinstance(value, dict):
            return as_number(value)
        return mapping().dump_python(mapping().validate_python(value), exclude_none=True)

    return WrapValidator(check, json_schema_input_type=PeakFlops | by_format)


@dataclass(frozen=True)
class DevicePeak:
    """The peak FLOP/s of a device, or CPU thread, in one format."""

    device: str
    number_format: str
    flops: float
    per_thread: bool
    source: str


@cache
def known_peaks() -> tuple[DevicePeak, ...]:
    """Return the peaks of all data sheets."""
    peaks = []
    with open(_TABLE, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            for name in FORMATS:
                if row[name]:
                    flops, per_thread = float(row[name]), row["per"] == "thread"
                    peaks.append(DevicePeak(row["device"], _number_format(name), flops, per_thread, row["source"]))
    return tuple(peaks)


@cache
def known_device(device_name: str) -> str | None:
    """Return the device of the table that a name means, or None.

    The device's name must be words of it, which "_" divides too: an RTX A1000 is no A100, an A10G no A10, and an
    RTX 3090 Ti no RTX 3090.
    """
    devices = {_matching_device(name) for name in device_name.split(", ")}
    return devices.pop() if len(devices) == 1 else None


def _matching_device(name: str) -> str | None:
    if _PARTITION.search(name):
        return None
    words = name.replace("_", " ")
    for peak in known_peaks():
        if re.search(rf"(?<!\w){re.escape(peak.device)}(?!\w){_NAMESAKES}", words, re.IGNORECASE):
            return peak.device
    return None


def known_peak(device_name: str, number_format: str) -> DevicePeak | None:
    """Return the peak of a data sheet for a format, or None."""
    device = known_device(device_name)
    for peak in known_peaks():
        if (peak.device, peak.number_format) == (device, number_format):
            return peak
    return None


def peak_of_file(peaks: PeaksOfFile | None, number_format: str | None) -> float | None:
    """Return the peak of a cluster file for a format, or None."""
    if not isinstance(peaks, Mapping):
        return peaks
    for name in FORMATS:
        if _number_format(name) == number_format:
            return peaks.get(name)
    return None


def _number_format(name: str) -> str:
    return COMPUTED_IN.get(canonical_precision(name), name)
