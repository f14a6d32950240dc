"""Meaning of everyday column names: ``Images/sec`` is a throughput in samples/s."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from dlperf_study.audit import quantities, vocabulary
from dlperf_study.audit.reading.numbers import is_no_number, written_number


class Use(StrEnum):
    """The use of a column."""

    METRIC = "metric"
    BASELINE = "baseline"
    CONDITION = "condition"
    RUN = "run"
    SUMMARY = "summary"
    NONE = "not used"


@dataclass(frozen=True)
class Meaning:
    """Our name for a column, its unit, scope and label.

    ``label``: the words that distinguish columns of one metric: ``async tp`` of ``Async TP tokens/s``. ``reason``: why
    a column is not used.
    """

    use: Use
    name: str = ""
    unit: str = ""
    scope: str = ""
    label: str = ""
    reason: str = ""


_THROUGHPUT_METRICS = {
    ("samples", False): quantities.THROUGHPUT,
    ("samples", True): quantities.SAMPLES_OF_DEVICE,
    ("tokens", False): quantities.TOKENS,
    ("tokens", True): quantities.TOKENS_OF_DEVICE,
    ("steps", False): quantities.STEPS,
}
_NAME_OF_RUNS = "name the columns of the runs run1, run2, ..."
DEVIATION = "std"
FLOPS_SCOPE = "it does not state whether the FLOP/s are per device"
_UNIT = re.compile(r"[(\[（]([^()\[\]（）]*)[)\]）]\s*$")


@lru_cache(maxsize=1 << 12)
def split_words(name: str) -> str:
    """Return the lower-case words of a column name, with synonyms replaced."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z]{2,}$)", " ", name.replace("#", " number "))
    spaced = re.sub(r"[/∕]", " per ", spaced.lower())
    plain = " ".join(re.sub(r"[_\-.,:()\[\]（）'\"]", " ", spaced).split())
    for pattern, phrase in vocabulary.WORDS.phrases.items():
        plain = pattern.sub(phrase, plain)
    canonical = [vocabulary.SYNONYMS.get(part, part) for part in plain.split()]
    return " ".join(part for part in canonical if part not in ("of", "the"))


def unit_in_name(name: str) -> str:
    """Return the text in brackets at the end: ``Step time (s)`` gives ``s``."""
    if match := _UNIT.search(name.strip()):
        return match[1].strip()
    return ""


def interpret_name(name: str, fields: Sequence[str], unit: str) -> Meaning:
    """Return the meaning of a column from its name, fields and unit."""
    bare = split_words(_UNIT.sub("", name.strip()) or name)
    everything = f"{bare} {split_words(unit)}".strip()
    for understand in (_run, _condition, _throughput, _ratio, _flops, _step_time, _duration, _unnamed_throughput):
        if meaning := understand(bare, everything, unit):
            # ``GPU`` may be a number of devices or their name.
            if meaning.name == "world_size" and not all(map(written_number, fields)):
                return Meaning(Use.CONDITION, "device_name")
            # ``Strong/Weak Scaling`` may be a kind of scaling in words.
            given = " ".join(field for field in fields if not is_no_number(field))
            if meaning.use is Use.METRIC and given and not re.search(r"\d", given):
                return Meaning(Use.CONDITION, name)
            return meaning
    return Meaning(Use.NONE, reason=_NAME_OF_RUNS if vocabulary.WORDS.numbered_run.search(bare) else "")


def _run(bare: str, everything: str, unit: str) -> Meaning | None:
    if vocabulary.WORDS.run.fullmatch(bare):
        return Meaning(Use.RUN, bare, unit)
    if bare in vocabulary.WORDS.deviations:
        return Meaning(Use.SUMMARY, DEVIATION, unit)
    if bare in vocabulary.WORDS.summaries:
        return Meaning(Use.SUMMARY, vocabulary.WORDS.summaries[bare], unit)
    return None


def _condition(bare: str, everything: str, unit: str) -> Meaning | None:
    for name, pattern in vocabulary.WORDS.conditions.items():
        if pattern.fullmatch(bare):
            if name == "batch" and "per device" in bare:
                name = "batch_per_device"
            if name == "global_batch" and split_words(unit) in ("t", "tokens"):
                name = "tokens_per_step"
            return Meaning(Use.CONDITION, name)
    return None


def _throughput(bare: str, everything: str, unit: str) -> Meaning | None:
    remaining, is_of_device = _split_off_device(everything)
    match = vocabulary.WORDS.throughput.search(remaining)
    if not match:
        return None
    label = vocabulary.WORDS.throughput.sub(" ", remaining)
    if "per node" in remaining:
        return Meaning(Use.NONE, reason="no check uses the throughput of one node")
    multiples = sorted(
        vocabulary.WORDS.multiples & {*label.split()}
        | vocabulary.WORDS.multiples_in_units & {*split_words(unit).split()}
    )
    if multiples:
        return Meaning(
            Use.NONE, reason=f"its name has a multiplier ({multiples[0]}); write it in each cell, as in 12.8k"
        )
    metric = _THROUGHPUT_METRICS.get((match[1], is_of_device))
    if metric is None:
        return Meaning(Use.NONE, reason="a device takes as many steps as the job; name it steps/s")
    scope = "not declared, read as the job"
    if is_of_device:
        scope = "one device"
    elif vocabulary.WORDS.job & {*bare.split()}:
        scope = "job"
    return _require_training(Meaning(Use.METRIC, metric, f"{match[1]}/s", scope, label))


def _ratio(bare: str, everything: str, unit: str) -> Meaning | None:
    if bare in vocabulary.WORDS.ratios_by_sign and (metric := vocabulary.WORDS.metric_of_sign.get(unit.lower())):
        return Meaning(Use.METRIC, metric, unit)
    for metric, pattern in vocabulary.WORDS.ratios.items():
        if pattern.search(bare):
            sign = "%" if "%" in unit or bare.endswith("%") else ""
            label = re.sub(r"[%×]|\bx$", "", pattern.sub(" ", everything))
            return _require_training(Meaning(Use.METRIC, metric, sign, "", label))
    return None


def _flops(bare: str, everything: str, unit: str) -> Meaning | None:
    remaining, is_of_device = _split_off_device(everything)
    match = vocabulary.WORDS.flops.search(remaining)
    if not match or not (is_of_device or "per second" in remaining or "tflops" in remaining):
        return None
    flop_unit = vocabulary.WORDS.flop_units.get(match[1] or "", "FLOP/s")
    if not is_of_device:
        return Meaning(Use.NONE, quantities.DEVICE_FLOPS, flop_unit, reason=FLOPS_SCOPE)
    label = vocabulary.WORDS.flops.sub(" ", remaining)
    return _require_training(Meaning(Use.METRIC, quantities.DEVICE_FLOPS, flop_unit, "one device", label))


def _step_time(bare: str, everything: str, unit: str) -> Meaning | None:
    match = vocabulary.WORDS.step_time.search(everything)
    if (
        not match
        and bare in ("speed", "throughput")
        and (unit_of_time := vocabulary.WORDS.time_units.get(split_words(unit)))
    ):
        return Meaning(Use.METRIC, "step_seconds", unit_of_time, "not declared, read as the time of a step")
    if not match:
        return None
    units = filter(None, map(vocabulary.WORDS.time_units.get, everything.split()))
    label = " ".join(
        part
        for part in vocabulary.WORDS.step_time.sub(" ", everything).split()
        if part not in vocabulary.WORDS.time_units
    )
    return _require_training(Meaning(Use.METRIC, "step_seconds", next(units, ""), "", label))


def _duration(bare: str, everything: str, unit: str) -> Meaning | None:
    unit_of_time = vocabulary.WORDS.time_units.get(split_words(unit))
    if unit_of_time and vocabulary.WORDS.duration.fullmatch(bare):
        return Meaning(Use.METRIC, quantities.DURATION, unit_of_time)
    return None


def _unnamed_throughput(bare: str, everything: str, unit: str) -> Meaning | None:
    parts = bare.split()
    # ``332/s`` counts something, and does not say what.
    counts_something = split_words(unit) == "per second"
    is_qualified = bool(
        (unit and not counts_something)
        or vocabulary.WORDS.numbered_run.search(bare)
        or {*parts} & {"per", "device", "node", "tokens"}
    )
    if is_qualified or "throughput" not in parts:
        return None
    unit, scope = "not declared, read as samples/s", "not declared, read as the job"
    return _require_training(Meaning(Use.METRIC, quantities.THROUGHPUT, unit, scope, bare))


def _split_off_device(text: str) -> tuple[str, bool]:
    """Return a text without ``per device``, and whether it was there."""
    without = re.sub(r"\bper device\b|\bsingle device\b", " ", text)
    return " ".join(without.split()), without != text


def _require_training(meaning: Meaning) -> Meaning:
    """Return a meaning with its label, or Use.NONE for other than training."""
    label: dict[str, None] = {}
    foreign_words = []
    for part in meaning.label.split():
        if part in ("per", "number", "ratio", "factor", "%"):
            continue
        if part in vocabulary.WORDS.other_things:
            foreign_words.append(part)
        if part not in vocabulary.WORDS.noise:
            label[part] = None
    if foreign_words:
        return Meaning(Use.NONE, reason=f"{' '.join(foreign_words)}: not a number of measured training")
    return Meaning(meaning.use, meaning.name, meaning.unit, meaning.scope, " ".join(label))
