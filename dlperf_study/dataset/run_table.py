"""The table of runs, one row each, and the table of their steps."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dlperf_study.analysis.communication import communication_of
from dlperf_study.analysis.steady_state import TOLERANCE, settled_at, steadiness
from dlperf_study.analysis.throughput import slowest_training, throughput_of
from dlperf_study.arrays import Floats, Integers
from dlperf_study.columns import TableName
from dlperf_study.dataset.tables import frame
from dlperf_study.evidence.rank_log_writer import WARMUP
from dlperf_study.evidence.run import Run

#: Environment variables of the locale: they do not change a library.
_LOCALE_VARIABLES = ("LANG", "LC_ALL", "TZ")


def run_row(run: Run, tolerance: float = TOLERANCE) -> dict[str, Any]:
    """Return the columns of one run; a run that didn't complete has no measurements.

    ``tolerance``: by how much the parts of a steady window may differ, a share of a step.
    """
    configuration, facts = run.configuration, run.facts
    row = {
        "identity": run.identity,
        "repetition": run.repetition,
        **configuration.displayed_values(),
        "world_size": configuration.world_size,
        "global_batch": configuration.global_batch,
        "outcome": str(run.outcome),
        "reason": run.reason,
        "started": facts["started"],
        "run_seconds": facts["seconds"],
        "order": facts["order"],
        "round": facts["round"],
        "position": facts["position"],
        "ranks_expected": facts["ranks_expected"],
        "ranks_seen": len(facts["ranks_seen"]),
        "fingerprint": facts["fingerprint"],
        "busy_cores_during": facts["load"]["busy_cores_during"],
        "waited_seconds": facts["load"]["waited_seconds"],
        **_environment_columns(run),
    }
    return row | _measured_columns(run, tolerance) if run.completed else row


def hosts_of(run: Run) -> list[str]:
    """Return the names of the hosts of the ranks, each once."""
    return sorted({str(log.facts["host"]) for log in run.ranks})


def _environment_columns(run: Run) -> dict[str, Any]:
    cluster, environment = run.facts["cluster"], run.facts["environment"]
    hardware, git = environment["hardware"], environment["git"]
    columns = {name: cluster.get(name) for name in ("launcher", "device", "device_name", "device_peak_flops", "link")}
    columns |= {name: hardware.get(name) for name in ("cpu_model", "memory_bytes", "cores")}
    variables = environment["variables"]
    settings = [f"{name}={value}" for name, value in variables.items() if name not in _LOCALE_VARIABLES]
    addresses = []
    for node in run.facts["nodes"]:
        if "address" in node:
            addresses.append(f"{node['name']} {node['address']} ({node.get('interface', 'unknown')})".strip())
    return columns | {
        "addresses": ", ".join(addresses) or None,
        "python_version": environment["software"].get("python"),
        "library_settings": "; ".join(settings) or "none",
        "measuring_code": run.facts["code"],
        "git_commit": git.get("commit"),
        "git_dirty": git.get("dirty"),
    }


def _measured_columns(run: Run, tolerance: float) -> dict[str, Any]:
    facts = run.ranks[0].facts
    described = ("parameters", "gradient_bytes", "flops_per_sample", "exchange", "library", "library_version")
    return {
        "host": ", ".join(hosts_of(run)),
        **{name: facts.get(name) for name in described},
        **_window_columns(run),
        **throughput_of(run),
        **communication_of(run),
        **_steadiness_columns(slowest_training(run).step_seconds, tolerance),
    }


def _steadiness_columns(step_seconds: Floats, tolerance: float) -> dict[str, str | int | None]:
    result = steadiness(step_seconds, tolerance)
    return {
        "steadiness": str(result.answer),
        "further_steps": result.further_steps,
        "settled_at_step": settled_at(step_seconds, tolerance),
    }


def _window_columns(run: Run) -> dict[str, Any]:
    """Return how many steps the windows have, the same number on every rank, and why the warm-up ended."""
    columns: dict[str, Any] = {"steps_measured": slowest_training(run).steps}
    warmup = run.slowest(WARMUP)
    if warmup and warmup.ended_by:
        columns |= {"steps_warmed_up": warmup.steps, "warmup_end": str(warmup.ended_by)}
    return columns


class StepColumns:
    """The windows of several runs, as whole columns of the table of steps: never an object per step."""

    def __init__(self) -> None:
        """Begin without any run."""
        self._identities: list[str] = []
        self._repetitions: list[int] = []
        self._ranks: list[int] = []
        self._windows: list[str] = []
        self._seconds: list[Floats] = []
        self._losses: list[Floats] = []

    def add(self, run: Run) -> None:
        """Add every window of every rank of a completed run."""
        for log in run.ranks:
            for window in log.windows.values():
                self._identities.append(run.identity)
                self._repetitions.append(run.repetition)
                self._ranks.append(log.rank)
                self._windows.append(window.name)
                self._seconds.append(window.step_seconds)
                self._losses.append(window.losses if window.losses.size else np.full(window.steps, np.nan))

    def frame(self) -> pd.DataFrame:
        """Return the table of steps, in the order in which the runs were added."""
        counts = np.array([seconds.size for seconds in self._seconds], dtype=np.int64)
        starts = np.cumsum(counts) - counts
        repetitions = np.repeat(np.array(self._repetitions, dtype=np.int64), counts)
        columns = {
            "identity": _repeated(self._identities, counts),
            "repetition": pd.Series(repetitions, dtype="Int64"),
            "rank": np.repeat(np.array(self._ranks, dtype=np.int64), counts),
            "window": _repeated(self._windows, counts),
            "step": np.arange(counts.sum(), dtype=np.int64) - np.repeat(starts, counts),
            "seconds": _joined(self._seconds),
            "loss": _joined(self._losses),
        }
        return frame(TableName.STEPS, columns)


def _repeated(strings: Sequence[str], counts: Integers) -> pd.Series:
    """Return each string as often as its count, as categories in order of appearance."""
    codes, categories = pd.factorize(np.array(strings, dtype=object))
    return pd.Series(pd.Categorical.from_codes(np.repeat(codes, counts), categories=pd.Index(categories, dtype="str")))


def _joined(columns: list[Floats]) -> Floats:
    return np.concatenate(columns) if columns else np.empty(0)
