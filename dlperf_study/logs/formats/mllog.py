"""MLPerf's log: JSON lines of points in time and of intervals."""

from collections.abc import Mapping
from typing import Any

from dlperf_study.logs.format import JOB_RATE, TRAINING, UNITLESS_RATE, VALIDATION, Entry, Format, JsonLine, Merge
from dlperf_study.logs.json_lines import numbers_of, text_facts

#: Keys that say something about the whole run.
_FACTS = ("global_batch_size", "submission_benchmark", "submission_platform", "submission_org", "train_samples")
#: What measures nothing; of the seeds, every rank may have its own.
_NO_NUMBERS = (*_FACTS, "seed")
_SYNONYMS = {"imgs_sec": JOB_RATE.name, "throughput": UNITLESS_RATE.name}


def _entry(line: Mapping[str, Any]) -> Entry | None:
    """Return the numbers of a line; an interval's start and stop are the times they were printed at."""
    key, value = line["key"], line.get("value")
    kind = line.get("event_type", "POINT_IN_TIME")
    milliseconds = float(line["time_ms"])
    if kind != "POINT_IN_TIME":
        values = {f"{key}_seconds": milliseconds / 1000}
    else:
        numbers = {} if key in _NO_NUMBERS else numbers_of(value if isinstance(value, Mapping) else {key: value})
        values = {_SYNONYMS.get(name, name): number for name, number in numbers.items()}
    if not values:
        return None
    place = line.get("metadata") or {}
    window = VALIDATION if key.startswith("eval") else TRAINING
    return Entry(
        values,
        _first(place, "epoch_num"),
        _first(place, "step", "step_num"),
        time_seconds=milliseconds / 1000,
        window=window,
    )


def _first(place: Mapping[str, Any], *names: str) -> int:
    """Return the first of some numbers that is given, −1 where none is."""
    return next((int(place[name]) for name in names if place.get(name) is not None), -1)


def _facts(line: Mapping[str, Any]) -> Mapping[str, str]:
    return text_facts({line["key"]: line.get("value")}) if line["key"] in _FACTS else {}


FORMAT = Format(
    name="mllog",
    title="MLPerf",
    program="mlcommons/logging, mlperf_logging.mllog 0.7 and later",
    lines=(JsonLine((":::MLLOG ",), _entry, _facts, (JOB_RATE, UNITLESS_RATE)),),
    rates=("throughput", "train_throughput"),
    merge=Merge.AS_NAMED,
    steps="as the program counts, where it says so",
    traps=(
        "a throughput among tracked_stats is that of the whole job",
        "it counts images in one benchmark, sequences in another, tokens in a third: no line says which",
        "epochs are counted from 0 or from 1",
    ),
)
