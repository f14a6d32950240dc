"""What the formats of trackers of experiments have in common: scalars whose names the program chose."""

from collections.abc import Mapping
from typing import Any

from dlperf_study.logs.format import LOSS, Format, JsonLine, JsonRecord, Merge
from dlperf_study.logs.scalar_rows import RATE_NAMES, RATES, meaning

_TRAP = (
    "programs choose the names of scalars: samples_per_sec and tokens_per_sec are read as those of the whole job, "
    "step_time as seconds, throughput as a rate of no stated unit; other tags of a device, rank or gpu, and those of "
    "eval, val or test are left out"
)


def scalar_format(name: str, title: str, program: str, marker: str, *traps: str) -> Format:
    """Return the format of a tracker; ``marker``: what is before its rows."""
    return Format(
        name=name,
        title=title,
        program=program,
        lines=(JsonLine((marker,), _record, metrics=(*RATES, LOSS)),),
        rates=RATE_NAMES,
        merge=Merge.ONE,
        steps="what the program gives as its step",
        traps=(_TRAP, *traps),
    )


def _record(row: Mapping[str, Any]) -> JsonRecord | None:
    """Return the numbers of a row whose tags are known; None if it has none."""
    values = {}
    for tag, value in row["values"].items():
        if metric_and_factor := meaning(tag):
            metric, factor = metric_and_factor
            values[metric] = value * factor
    return JsonRecord(values, step=row["step"], time_seconds=row["wall_time"]) if values else None
