"""MLPerf's log: JSON lines of points in time and of intervals."""

from collections.abc import Mapping
from typing import Any

from dlperf_study.logs.format import TRAINING, VALIDATION, Entry, Format, JsonLine, Merge
from dlperf_study.logs.json_values import numbers_of, text_facts

#: Keys that say something about the whole run.
_FACTS = ("global_batch_size", "submission_benchmark", "submission_platform", "submission_org", "train_samples", "seed")


def _entry(line: Mapping[str, Any]) -> Entry | None:
    """Return the numbers of a line; an interval's start and stop are the times they were printed at."""
    key, value = line["key"], line.get("value")
    kind = line.get("event_type", "POINT_IN_TIME")
    milliseconds = float(line["time_ms"])
    if kind != "POINT_IN_TIME":
        values = {f"{key}_seconds": milliseconds / 1000}
    else:
        values = {} if key in _FACTS else numbers_of(value if isinstance(value, Mapping) else {key: value})
    if not values:
        return None
    place = line.get("metadata") or {}
    window = VALIDATION if key.startswith("eval") else TRAINING
    return Entry(
        values,
        int(place.get("epoch_num", -1)),
        int(place.get("step", place.get("step_num", -1))),
        time_seconds=milliseconds / 1000,
        window=window,
    )


def _facts(line: Mapping[str, Any]) -> Mapping[str, str]:
    return text_facts({line["key"]: line.get("value")}) if line["key"] in _FACTS else {}


FORMAT = Format(
    name="mllog",
    title="MLPerf",
    program="mlcommons/logging, mlperf_logging.mllog 0.7 and later",
    lines=(JsonLine((":::MLLOG ",), _entry, _facts),),
    rates=("throughput",),
    merge=Merge.AS_NAMED,
    steps="as the program counts, where it says so",
    traps=("a throughput among tracked_stats is that of the whole job", "epochs are counted from 0 or from 1"),
)
