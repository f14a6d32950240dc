"""MLPerf's log: JSON lines of points in time and of intervals."""

from collections.abc import Mapping
from typing import Any

from dlperf_study.logs.format import JOB_RATE, TRAINING, UNITLESS_RATE, VALIDATION, Format, JsonLine, JsonRecord, Merge
from dlperf_study.logs.json_lines import numeric_values, string_values

#: Keys of facts about the whole run.
_FACTS = ("global_batch_size", "submission_benchmark", "submission_platform", "submission_org", "train_samples")
#: Keys of values that measure nothing; every rank may have its own seed.
_NO_NUMBERS = (*_FACTS, "seed")
_SYNONYMS = {"imgs_sec": JOB_RATE.name, "throughput": UNITLESS_RATE.name}


def _record(line: Mapping[str, Any]) -> JsonRecord | None:
    """Return the numbers of a line; an interval's start and stop are the times they were printed at."""
    key, value = line["key"], line.get("value")
    kind = line.get("event_type", "POINT_IN_TIME")
    milliseconds = float(line["time_ms"])
    if kind != "POINT_IN_TIME":
        values = {f"{key}_seconds": milliseconds / 1000}
    else:
        measured = {} if key in _NO_NUMBERS else numeric_values(value if isinstance(value, Mapping) else {key: value})
        values = {_SYNONYMS.get(name, name): value for name, value in measured.items()}
    if not values:
        return None
    metadata = line.get("metadata") or {}
    window = VALIDATION if key.startswith("eval") else TRAINING
    return JsonRecord(
        values,
        _first(metadata, "epoch_num"),
        _first(metadata, "step", "step_num"),
        time_seconds=milliseconds / 1000,
        window=window,
    )


def _first(metadata: Mapping[str, Any], *names: str) -> int:
    """Return the value of the first of these names that has one, −1 if none has."""
    return next((int(metadata[name]) for name in names if metadata.get(name) is not None), -1)


_LINE = JsonLine(
    (":::MLLOG ",),
    _record,
    lambda line: string_values({line["key"]: line.get("value")}) if line["key"] in _FACTS else {},
    (JOB_RATE, UNITLESS_RATE),
)
FORMAT = Format(
    name="mllog",
    title="MLPerf",
    program="mlcommons/logging, mlperf_logging.mllog 0.7 and later",
    lines=(_LINE,),
    rates=("throughput", "train_throughput"),
    merge=Merge.AS_NAMED,
    steps="as the program counts, if it prints one",
    device_rate_facts={"submission_benchmark": ("ssd", "retinanet")},
    traps=(
        "a throughput among tracked_stats is that of the whole job, but in SSD (RetinaNet) that of each device",
        "it counts images in one benchmark, sequences in another, tokens in a third: no line says which",
        "epochs are counted from 0 or from 1",
    ),
)
