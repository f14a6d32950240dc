"""Waterfalls from printed stage times or communication shares.

A task is a fixed number of samples of a worker, so the task of one worker is the ideal one of several. Nothing has an
interval. Stages that are timed on the host book the wait for a device under whichever stage first needs a result: with
one worker the update, with several the copy of the gradients. The wait is recognised by the update, which takes less by
as much.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dlperf_study.metrics.published import stage_rows

#: The causes in the order of a waterfall, with what pages call them.
PRINTED_CAUSES = {
    "computation": "Computation",
    "copy": "Copy off the device",
    "communication": "Communication between workers",
    "outside": "Outside of batches",
}
_TASK, _BATCHES, _COMMUNICATION = "task_process_seconds", "batch_process_seconds", "report_gradient_seconds"
_COPY, _UPDATE = "tensor_numpy_seconds", "apply_gradients_seconds"


@dataclass(frozen=True)
class PrintedWaterfall:
    """Ideal task, causes and measured task of several workers, in seconds.

    Attributes:
        source, table, row, world_size: which printed row it is of.
        ideal, causes, measured: ideal + causes = measured.
        communication: what the source prints as communication.
        wait: the part of ``communication`` that is the wait for the device, 0 where none is recognised.
    """

    source: str
    table: str
    row: str
    world_size: int
    ideal: float
    causes: Mapping[str, float]
    measured: float
    communication: float
    wait: float = 0.0


def printed_waterfalls(cells: pd.DataFrame) -> list[PrintedWaterfall]:
    """Return the waterfalls of printed stages and of communication shares."""
    return [*_split_stages(cells), *_split_shares(cells)]


def _split_stages(cells: pd.DataFrame) -> Iterator[PrintedWaterfall]:
    for (source, table), tasks in stage_rows(cells).groupby(["source", "table"], sort=False):
        alone, *larger = [_seconds(task) | {"row": task} for task in tasks.sort_values("world_size").itertuples()]
        if alone["row"].world_size != 1 or _TASK not in alone:
            continue
        for task in larger:
            if {_TASK, _COMMUNICATION} <= task.keys():
                communication, wait, causes = _causes_of_stages(alone, task)
                row, sizes = task["row"], (alone[_TASK], causes, task[_TASK], communication, wait)
                yield PrintedWaterfall(str(source), str(table), str(row.row), int(row.world_size), *sizes)


def _seconds(task: Any) -> dict[str, Any]:
    """Return the stages of a task that are printed, in seconds."""
    printed = {}
    for name in (_TASK, _BATCHES, _COMMUNICATION, _COPY, _UPDATE):
        printed[name] = getattr(task, name)
    return {name: float(cell) for name, cell in printed.items() if not pd.isna(cell) and cell != "-"}


def _causes_of_stages(alone: Mapping[str, Any], task: Mapping[str, Any]) -> tuple[float, float, dict[str, float]]:
    """Return printed communication, the device wait in it, and causes."""
    exposed, causes, wait = task[_COMMUNICATION] - alone.get(_COMMUNICATION, 0.0), {}, 0.0
    communication = task[_COMMUNICATION]
    if {_COPY, _UPDATE} <= task.keys() and _UPDATE in alone:
        wait = min(max(0.0, alone[_UPDATE] - task[_UPDATE]), task[_COPY])
        causes["copy"] = task[_COPY] - wait
        # Where the stages would be more than the task, the communication begins with the copy.
        if task[_COMMUNICATION] + task[_COPY] + task[_UPDATE] > task[_TASK]:
            exposed -= task[_COPY]
        else:
            communication += task[_COPY]
    if _BATCHES in task and _BATCHES in alone:
        causes["outside"] = (task[_TASK] - task[_BATCHES]) - (alone[_TASK] - alone[_BATCHES])
    causes["communication"] = exposed
    causes["computation"] = task[_TASK] - alone[_TASK] - sum(causes.values())
    return communication, wait, {name: causes[name] for name in PRINTED_CAUSES if name in causes}


def _split_shares(cells: pd.DataFrame) -> Iterator[PrintedWaterfall]:
    """Yield the waterfalls of tables of communication shares."""
    printed = cells[(cells["role"] == "result") & cells["metric"].isin(["throughput", "communication_share"])]
    for (source, table), rows in printed.groupby(["source", "table"], sort=False):
        values = rows.pivot_table(index=["world_size", "row", "batch_per_device"], columns="metric", values="value")
        if "communication_share" not in values or (values := values.dropna()).empty or values.index[0][0] != 1:
            continue
        steps = []
        for (world_size, row, batch), point in zip(values.index, values.itertuples(), strict=True):
            steps.append((int(world_size), str(row), world_size * batch / point.throughput, point.communication_share))
        (_, _, ideal, _), *larger = steps
        for world_size, row, measured, share in larger:
            exposed = share * measured
            causes = {"computation": measured - exposed - ideal, "communication": exposed}
            yield PrintedWaterfall(str(source), str(table), row, world_size, ideal, causes, measured, exposed)
