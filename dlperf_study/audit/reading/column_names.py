"""Meaning of everyday column names: ``Images/sec`` is a rate in samples/s."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from dlperf_study.audit import quantities
from dlperf_study.audit.reading.numbers import written_number


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


#: Words that mean the same, after the name was split into words in lower case.
_SYNONYMS = {
    **dict.fromkeys(("images", "image", "imgs", "img", "sample", "samp", "samps", "examples", "example"), "samples"),
    **dict.fromkeys(("sequences", "sequence", "seqs", "seq", "sentences", "sentence", "frames", "pics"), "samples"),
    **dict.fromkeys(("token", "toks", "tok"), "tokens"),
    **dict.fromkeys(("s", "sec", "secs", "seconds"), "second"),
    **dict.fromkeys(("iterations", "iteration", "iters", "iter", "it", "its", "step", "batches"), "steps"),
    **dict.fromkeys(
        ("gpus", "gpu", "devices", "chips", "chip", "cards", "card", "accelerators", "accelerator"), "device"
    ),
    **dict.fromkeys(
        ("workers", "worker", "ranks", "rank", "trainers", "trainer", "tpus", "tpu", "npus", "npu"), "device"
    ),
    **dict.fromkeys(("nodes", "hosts", "host", "machines", "machine"), "node"),
    **dict.fromkeys(("n", "num", "no", "nr", "nb", "count", "counts"), "number"),
}
#: What stands for several words.
_PHRASES = (
    (r"\bspeed up\b|\bacceleration ratio\b|加速比", "speedup"),
    (r"\btps\b", "tokens per second"),
    (r"\btgs\b|\btokens? per p per s\b", "tokens per second per device"),
    (r"\b(?:bsz|batchsize)\b", "bs"),
    (r"\bpip(?:e)?line\b", "pipeline"),
    (r"\beff\b", "efficiency"),
    (r"\bn(gpus?|devices?|nodes?|workers?|ranks?)\b", r"number \1"),
    (r"\bips\b|\bfps\b|\bs per s\b", "samples per second"),
    (r"\bt per s\b", "tokens per second"),
    # The rates of FlagPerf's tables: with all that a run does, in training alone, and without reading data.
    (r"\bp (whole|train|core)\b", r"samples per second \1"),
    (r"吞吐量?", " throughput "),
    (r"卡数", " number device "),
)
_NOISE = {"train", "training", "total", "overall", "global", "aggregate", "job", "throughput", "speed", "rate", "rates"}
_NOISE |= {"model", "measured", "avg", "average", "mean", "median", "value", "perf", "performance", "of", "the", "in"}
#: Words of the whole job.
_OF_JOB = {"total", "overall", "global", "aggregate", "job", "all"}
#: Rates and times with such words are of something else than training steps that were measured.
_OTHER_THINGS = {
    "input",
    "loader",
    *("eval", "evaluation", "infer", "inference", "test", "valid", "validation", "decode", "prefill", "generation"),
    *("data", "loading", "load", "forward", "backward", "communication", "comm", "allreduce", "optimizer", "compile"),
    *("ideal", "linear", "theoretical", "expected", "target", "peak", "max", "min", "std", "stdev", "stddev"),
    *("energy", "power", "cost", "price", "memory", "mem", "watt", "dollar"),
}
#: Words of a name by which its numbers are multiplied, and those that only a unit has: ``M`` may be a network's size.
_MULTIPLES = {"k", "kilo", "thousand", "thousands", "million", "millions", "x1000", "×1000", "10^3", "10³", "1e3"}
_MULTIPLES_IN_UNITS = {"m", "1000"}
_RATE = re.compile(r"\b(samples|tokens|steps) (?:per|/) second\b")
_RATE_METRICS = {
    ("samples", False): quantities.THROUGHPUT,
    ("samples", True): quantities.SAMPLES_OF_DEVICE,
    ("tokens", False): quantities.TOKENS,
    ("tokens", True): quantities.TOKENS_OF_DEVICE,
    ("steps", False): quantities.STEPS,
}
_FLOPS = re.compile(r"\b(tera|giga|peta|t|g|p)?(?:flops?)\b(?: per second)?")
_FLOP_UNITS = {"t": "TFLOP/s", "tera": "TFLOP/s", "g": "GFLOP/s", "giga": "GFLOP/s", "p": "PFLOP/s", "peta": "PFLOP/s"}
_STEP_TIME = re.compile(
    r"\b(?:steps|batch) (?:time|duration|latency)\b|\btime per (?:steps|batch)\b"
    r"|\b(?:second|ms|us|milliseconds?) per (?:steps|batch)\b"
)
_TIME_UNITS = {
    **dict.fromkeys(("second",), "s"),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("us", "µs", "microsecond", "microseconds"), "us"),
    **dict.fromkeys(("min", "minutes"), "min"),
}
_RATIOS = (
    (re.compile(r"\brelative (?:throughput|speed|performance)\b"), quantities.RELATIVE),
    (re.compile(r"\bspeedup\b(?: ratio| factor)?|\b(?:weak|strong) scaling\b(?! efficiency)"), quantities.SPEEDUP),
    (re.compile(r"\b(?:(?:weak|strong|parallel|scaling|scale) )*efficiency\b"), quantities.EFFICIENCY),
    (
        re.compile(r"\bmfu\b|\bmodel flops? utili[sz]ation\b|\bpercentage (?:theoretical )?peak flops? per second\b"),
        quantities.MFU,
    ),
    (re.compile(r"\bhfu\b|\bhardware flops? utili[sz]ation\b"), quantities.HFU),
)
#: Words that mean a speedup or an efficiency, as the sign after the numbers says.
_RATIOS_BY_SIGN = ("scaling", "scaling factor", "scale", "acceleration", "factor", "gain")
_METRIC_OF_SIGN = {"x": quantities.SPEEDUP, "×": quantities.SPEEDUP, "%": quantities.EFFICIENCY}
#: Names of conditions, matched as a whole.
_CONDITIONS = (
    (r"world size|(?:total )?(?:number )?device(?: number)?|number [abhv]\d{2,3}s?", "world_size"),
    (r"(?:number )?node(?: number)?", "nodes"),
    (r"(?:number )?device per (?:node|server)", "devices_per_node"),
    (
        r"gbs|(?:global|glob|total|effective)(?: train)? (?:batch|bs)(?: size)?(?: total)?|train batch size total",
        "global_batch",
    ),
    (r"(?:local|device|micro per device) (?:batch|bs)(?: size)?|lbs", "batch_per_device"),
    (r"(?:train )?(?:per device (?:train )?)?(?:batch|bs)(?: size)?(?: per device)?", "batch"),
    (r"samples (?:length|len)|seqlen|seq ?length|(?:max )?(?:samples|context|ctx) (?:length|len)", "sequence_length"),
    (r"(?:train |input )?samples (?:size|resolution)|resolution|input size", "image_size"),
    (r"tokens per samples", "tokens_per_sample"),
    (r"tokens per steps", "tokens_per_step"),
    (r"precision|dtype|data type|compute dtype|数据精度", "precision"),
    (r"model(?: id| name| size)?|network|backbone|模型", "model"),
    (r"device(?: type| model| name)|hardware", "device_name"),
    *(
        (rf"{name}|{noun} (?:model )?parallel(?:ism)?(?: size| degree)?", name)
        for name, noun in (("tp", "tensor"), ("pp", "pipeline"), ("cp", "context"), ("dp", "data"))
    ),
    (r"sharding degree", "dp"),
    (r"[ev]p|vpp|sp|fsdp", "parallel"),
    (r"mbs|mic(?:ro)? (?:batch|bs)(?: size)?(?: per device)?", quantities.MICRO_BATCH),
    (
        r"(?:number )?(?:(?:gradient|grad) )?(?:accum|accumulation|accumulate)(?: steps)?|gas|micro number",
        quantities.ACCUMULATION,
    ),
    (r"(?:number )?(?:params|parameters)(?: [bm]illion)?", "parameters"),
    (r"(?:number )?(?:hidden )?layers", quantities.LAYERS),
    (r"hidden(?: unit)?(?: size| dim)?|d model", quantities.HIDDEN),
    (r"vocab(?:ulary)?(?: size)?", quantities.VOCABULARY),
)
_RUN = re.compile(r"(?:run|trial|rep|repeat|repetition|seed|r) ?(?:number )?\d+")
_NUMBERED_RUN = re.compile(r"\b(?:run|trial|repeat|repetition) ?\d+\b")
_NAME_OF_RUNS = "call the columns of the runs of a result run1, run2, ..."
_SUMMARIES = {"mean": "mean", "average": "mean", "avg": "mean", "median": "median"}
_DEVIATIONS = {"std", "stdev", "stddev", "std dev", "standard deviation", "sd", "sigma"}
DEVIATION = "std"
FLOPS_SCOPE = "it does not say whether the FLOP/s are of one device"
_UNIT = re.compile(r"[(\[（]([^()\[\]（）]*)[)\]）]\s*$")


@lru_cache(maxsize=1 << 12)
def split_words(name: str) -> str:
    """Return the lower-case words of a column name, with synonyms replaced."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z]{2,}$)", " ", name.replace("#", " number "))
    spaced = re.sub(r"[/∕]", " per ", spaced.lower())
    plain = " ".join(re.sub(r"[_\-.,:()\[\]（）'\"]", " ", spaced).split())
    for pattern, phrase in _PHRASES:
        plain = re.sub(pattern, phrase, plain)
    canonical = [_SYNONYMS.get(part, part) for part in plain.split()]
    return " ".join(part for part in canonical if part not in ("of", "the"))


def unit_in_name(name: str) -> str:
    """Return the text in brackets at the end: ``Step time (s)`` gives ``s``."""
    match = _UNIT.search(name.strip())
    return match[1].strip() if match else ""


def interpret_name(name: str, fields: Sequence[str], unit: str) -> Meaning:
    """Return the meaning of a column from its name, fields and unit."""
    bare = split_words(_UNIT.sub("", name.strip()) or name)
    everything = f"{bare} {split_words(unit)}".strip()
    for understand in (_run, _condition, _rate, _ratio, _flops, _step_time, _unnamed_rate):
        meaning = understand(bare, everything, unit)
        if meaning:
            # ``GPU`` may be a number of devices or their name.
            is_name = meaning.name == "world_size" and not all(map(written_number, fields))
            return Meaning(Use.CONDITION, "device_name") if is_name else meaning
    return Meaning(Use.NONE, reason=_NAME_OF_RUNS if _NUMBERED_RUN.search(bare) else "")


def _run(bare: str, everything: str, unit: str) -> Meaning | None:
    if _RUN.fullmatch(bare):
        return Meaning(Use.RUN, bare, unit)
    if bare in _DEVIATIONS:
        return Meaning(Use.SUMMARY, DEVIATION, unit)
    return Meaning(Use.SUMMARY, _SUMMARIES[bare], unit) if bare in _SUMMARIES else None


def _condition(bare: str, everything: str, unit: str) -> Meaning | None:
    for pattern, name in _CONDITIONS:
        if re.fullmatch(pattern, bare):
            if name == "batch" and "per device" in bare:
                name = "batch_per_device"
            if name == "global_batch" and split_words(unit) in ("t", "tokens"):
                name = "tokens_per_step"
            return Meaning(Use.CONDITION, name)
    return None


def _rate(bare: str, everything: str, unit: str) -> Meaning | None:
    remaining, is_of_device = _split_off_device(everything)
    match = _RATE.search(remaining)
    if not match:
        return None
    label = _RATE.sub(" ", remaining)
    if "per node" in remaining:
        return Meaning(Use.NONE, reason="a rate of one node is compared with nothing")
    multiples = sorted(_MULTIPLES & {*label.split()} | _MULTIPLES_IN_UNITS & {*split_words(unit).split()})
    if multiples:
        return Meaning(Use.NONE, reason=f"its name multiplies its numbers ({multiples[0]}): write 12.8k in each cell")
    metric = _RATE_METRICS.get((match[1], is_of_device))
    if metric is None:
        return Meaning(Use.NONE, reason="steps of one device are those of the job")
    scope = "one device" if is_of_device else "job" if _OF_JOB & {*bare.split()} else "not declared, read as the job"
    return _require_training(Meaning(Use.METRIC, metric, f"{match[1]}/s", scope, label))


def _ratio(bare: str, everything: str, unit: str) -> Meaning | None:
    if bare in _RATIOS_BY_SIGN and (metric := _METRIC_OF_SIGN.get(unit.lower())):
        return Meaning(Use.METRIC, metric, unit)
    for pattern, metric in _RATIOS:
        if pattern.search(bare):
            sign = "%" if "%" in unit or bare.endswith("%") else ""
            label = re.sub(r"[%×]|\bx$", "", pattern.sub(" ", everything))
            return _require_training(Meaning(Use.METRIC, metric, sign, "", label))
    return None


def _flops(bare: str, everything: str, unit: str) -> Meaning | None:
    remaining, is_of_device = _split_off_device(everything)
    match = _FLOPS.search(remaining)
    if not match or not (is_of_device or "per second" in remaining or "tflops" in remaining):
        return None
    if not is_of_device:
        return Meaning(Use.NONE, quantities.DEVICE_FLOPS, _FLOP_UNITS.get(match[1] or "", "FLOP/s"), reason=FLOPS_SCOPE)
    label = _FLOPS.sub(" ", remaining)
    flop_unit = _FLOP_UNITS.get(match[1] or "", "FLOP/s")
    return _require_training(Meaning(Use.METRIC, quantities.DEVICE_FLOPS, flop_unit, "one device", label))


def _step_time(bare: str, everything: str, unit: str) -> Meaning | None:
    match = _STEP_TIME.search(everything)
    if not match and bare in ("speed", "throughput") and (unit_of_time := _TIME_UNITS.get(split_words(unit))):
        return Meaning(Use.METRIC, "step_seconds", unit_of_time, "not declared, read as the time of a step")
    if not match:
        return None
    units = [_TIME_UNITS[part] for part in everything.split() if part in _TIME_UNITS]
    label = " ".join(part for part in _STEP_TIME.sub(" ", everything).split() if part not in _TIME_UNITS)
    return _require_training(Meaning(Use.METRIC, "step_seconds", units[0] if units else "", "", label))


def _unnamed_rate(bare: str, everything: str, unit: str) -> Meaning | None:
    parts = bare.split()
    is_qualified = bool(unit or _NUMBERED_RUN.search(bare) or {*parts} & {"per", "device", "node", "tokens"})
    if is_qualified or "throughput" not in parts:
        return None
    meaning = Meaning(
        Use.METRIC, quantities.THROUGHPUT, "not declared, read as samples/s", "not declared, read as the job", bare
    )
    return _require_training(meaning)


def _split_off_device(text: str) -> tuple[str, bool]:
    """Return a text without ``per device``, and whether it was there."""
    without = re.sub(r"\bper device\b|\bsingle device\b", " ", text)
    return " ".join(without.split()), without != text


def _require_training(meaning: Meaning) -> Meaning:
    """Return a meaning with its label, or Use.NONE for other than training."""
    label_parts = [part for part in meaning.label.split() if part not in ("per", "number", "ratio", "factor", "%")]
    foreign_words = [part for part in label_parts if part in _OTHER_THINGS]
    if foreign_words:
        return Meaning(Use.NONE, reason=f"{' '.join(foreign_words)}: it is of something else than measured training")
    label = " ".join(dict.fromkeys(part for part in label_parts if part not in _NOISE))
    return Meaning(meaning.use, meaning.name, meaning.unit, meaning.scope, label)
