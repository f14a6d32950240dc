"""The log of one rank: collected in memory, written in one piece when the windows are over."""

import json
import os
import socket
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from dlperf_study.cluster.software import measuring_code
from dlperf_study.study.configuration import Configuration
from dlperf_study.writing import write_atomically

#: The format of the record and the logs of a run, as ``docs/evidence.md`` describes it.
FORMAT = 2
#: The names of windows. Computation alone is measured before and after training, the exchange of all gradients alone
#: last; an exchange of a part of them is named after its bytes.
WARMUP, TRAINING, EXCHANGE = "warmup", "training", "exchange"
COMPUTATION_BEFORE, COMPUTATION_AFTER = "computation_before", "computation_after"
#: In this one batches arrive and nothing is trained.
INPUT = "input"
#: The windows of which every step has a batch.
WITH_BATCHES = (WARMUP, COMPUTATION_BEFORE, TRAINING, COMPUTATION_AFTER)


class WarmupEnd(StrEnum):
    """Why a warm-up ended: its steps were alike, its time was over, or only a number of steps was requested."""

    STEADY = "steady"
    LIMIT = "limit"
    STEPS = "steps"


def part_of_exchange(size: int) -> str:
    """Return the name of the window in which ``size`` bytes of the gradients are exchanged."""
    return f"{EXCHANGE}_{size}"


class Rank(Protocol):
    """The position of a trainer in its run, and how it exchanges gradients."""

    rank: int
    world_size: int
    exchange_kind: str


class Drain(Protocol):
    """How long updates of a rank were pending after training: at least ``seconds``, and at most that much longer."""

    @property
    def seconds(self) -> float:
        """Seconds in which updates were certainly pending."""

    @property
    def resolution_seconds(self) -> float:
        """How much longer they may have been."""


class LossScaling(Protocol):
    """The state of loss scaling when training is over."""

    @property
    def scale(self) -> float:
        """The factor of the loss."""


@dataclass(frozen=True)
class TimedWindow:
    """Measured steps of one kind: ``step_seconds`` and ``losses`` hold one value per step.

    ``input_seconds`` too, of steps that train: the part of each in which it waited for its batch. ``ended_by`` is of
    the warm-up only, ``skipped_steps`` of steps with loss scaling: how many updated nothing.
    """

    name: str
    step_seconds: list[float]
    losses: list[float]
    input_seconds: list[float] | None = None
    bytes: int | None = None
    ended_by: WarmupEnd | None = None
    skipped_steps: int | None = None
    begin_ns: int | None = None

    @property
    def seconds(self) -> float:
        """Seconds from the barrier to the end of the last step."""
        return sum(self.step_seconds)


class RankLogWriter:
    """Collects the lines of the log of one rank; ``write`` puts them on disk atomically."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: list[dict[str, Any]] = []

    def begin(self, rank: Rank, description: dict[str, Any], configuration: Configuration) -> None:
        """Add the ``rank`` line: which process measures, with which code and library, and the anchor of its clock."""
        node, local_rank = divmod(rank.rank, configuration.devices_per_node)
        run = f"{configuration.identity}/{self._path.parent.name}"
        position = {"rank": rank.rank, "world_size": rank.world_size, "node": node, "local_rank": local_rank}
        process = {"host": socket.gethostname(), "pid": os.getpid(), "exchange": rank.exchange_kind}
        identity = {"format": FORMAT, "run": run, "code": measuring_code()}
        anchor = {"unix_ns": time.time_ns(), "clock_ns": time.perf_counter_ns()}
        clock = {"clock": "perf_counter_ns", "wall_anchor": anchor}
        self._add("rank", identity | position | process | description | clock)

    def window(self, window: TimedWindow) -> None:
        """Add one window."""
        values: dict[str, Any] = {
            "name": window.name,
            "steps": len(window.step_seconds),
            "seconds": window.seconds,
            "step_seconds": window.step_seconds,
            "losses": window.losses,
        }
        if window.begin_ns is not None:
            values["begin_ns"] = window.begin_ns
        if window.input_seconds is not None:
            values["input_seconds"] = window.input_seconds
        if window.bytes is not None:
            values["bytes"] = window.bytes
        if window.ended_by:
            values["ended_by"] = window.ended_by
        if window.skipped_steps is not None:
            values["skipped_steps"] = window.skipped_steps
        self._add("window", values)

    def end(
        self,
        initial_checksum: str,
        parameter_checksum: str,
        drain: Drain,
        peak_memory: dict[str, int],
        loss_scaling: LossScaling | None = None,
        planted: dict[str, float] | None = None,
        cpu_limit: dict[str, float] | None = None,
    ) -> None:
        """Add the ``end`` line, without which a log counts as truncated.

        ``peak_memory``: bytes by name, of the training window. ``planted`` is of the self-test only.
        ``cpu_limit``: what was counted in the training window of a rank that may use a share of the cores only.
        """
        windows = sum(line["kind"] == "window" for line in self._lines)
        checksums = {"initial_checksum": initial_checksum, "parameter_checksum": parameter_checksum}
        pending = {"drain_seconds": drain.seconds, "drain_resolution_seconds": drain.resolution_seconds}
        scale = {"loss_scale": loss_scaling.scale} if loss_scaling else {}
        waits = {} if planted is None else {"planted": planted}
        shares = {} if cpu_limit is None else {"cpu_limit": cpu_limit}
        memory = {"peak_memory": peak_memory}
        self._add("end", {"windows": windows} | pending | checksums | memory | scale | waits | shares)

    def write(self) -> None:
        """Write all lines so that the file is either absent or complete."""
        write_atomically(self._path, "".join(json.dumps(line) + "\n" for line in self._lines))

    def _add(self, kind: str, values: dict[str, Any]) -> None:
        self._lines.append({"kind": kind} | values)
