"""One row of the table of runs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dlperf_study.analysis.communication import communication_of
from dlperf_study.analysis.steady_state import settled_at
from dlperf_study.analysis.throughput import slowest_training, throughput_of
from dlperf_study.arrays import Floats, Integers
from dlperf_study.columns import Table
from dlperf_study.dataset.tables import frame
from dlperf_study.evidence.rank_log import Window
from dlperf_study.evidence.run import Run

# The table of steps: whole columns, never an object per step.


class StepColumns:
    """Collects the windows of one run after another; ``frame`` lays them end to end."""

    def __init__(self) -> None:
        self._places: list[tuple[str, int, int, str]] = []
        self._windows: list[Window] = []

    def add(self, run: Run) -> None:
        """Add every window of every rank of a completed run."""
        for log in run.ranks:
            for window in log.windows.values():
                self._places.append((run.identity, run.repetition, log.rank, window.name))
                self._windows.append(window)

    def frame(self) -> pd.DataFrame:
        """Return the table of steps, in the order the runs were added."""
        counts = np.array([window.steps for window in self._windows], dtype=np.int64)
        identities, repetitions, ranks, names = zip(*self._places, strict=True) if self._places else ((),) * 4
        columns = {
            "identity": _repeated_text(identities, counts),
            "repetition": pd.Series(np.repeat(np.array(repetitions, dtype=np.int64), counts), dtype="Int64"),
            "rank": np.repeat(np.array(ranks, dtype=np.int64), counts),
            "window": _repeated_text(names, counts),
            "step": _numbered(counts),
            "seconds": _joined([window.step_seconds for window in self._windows]),
            "loss": _joined([_losses(window) for window in self._windows]),
        }
        return frame(Table.STEPS, columns)


def _repeated_text(texts: Sequence[str], counts: Integers) -> pd.Series:
    """Return each text as often as its count, as categories in order of appearance."""
    codes, categories = pd.factorize(np.array(texts, dtype=object))
    return pd.Series(pd.Categorical.from_codes(np.repeat(codes, counts), categories=pd.Index(categories, dtype="str")))


def _numbered(counts: Integers) -> Integers:
    """Return 0 … count − 1 for each count, end to end."""
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    numbers: Integers = np.arange(counts.sum(), dtype=np.int64) - starts
    return numbers


def _losses(window: Window) -> Floats:
    return window.losses if window.losses.size else np.full(window.steps, np.nan)


def _joined(parts: list[Floats]) -> Floats:
    return np.concatenate(parts) if parts else np.empty(0)


#: Variables of a run that set nothing in a library.
_OF_THE_LOCALE = ("LANG", "LC_ALL", "TZ")


def run_row(run: Run) -> dict[str, Any]:
    """Return the columns of one run; a run that didn't complete has no measurement."""
    return {
        "identity": run.identity,
        "repetition": run.repetition,
        **run.configuration.displayed_values(),
        "world_size": run.configuration.world_size,
        "global_batch": run.configuration.global_batch,
        **_life(run),
        **_place(run),
        **(_measurements(run) if run.completed else {}),
    }


def hosts_of(run: Run) -> list[str]:
    """Return the names of the hosts of the ranks, each once."""
    return sorted({str(log.facts["host"]) for log in run.ranks})


def _life(run: Run) -> dict[str, Any]:
    load = run.facts["load"]
    return {
        "outcome": str(run.outcome),
        "reason": run.reason,
        "started": run.facts["started"],
        "run_seconds": run.facts["seconds"],
        "ranks_expected": run.facts["ranks_expected"],
        "ranks_seen": len(run.facts["ranks_seen"]),
        "fingerprint": run.facts["fingerprint"],
        "busy_cores_during": load.get("busy_cores_during"),
        "waited_seconds": load.get("waited_seconds"),
    }


def _place(run: Run) -> dict[str, Any]:
    cluster, environment = run.facts["cluster"], run.facts["environment"]
    hardware, git = environment.get("hardware", {}), environment.get("git", {})
    variables = environment.get("variables", {})
    return {
        **{name: cluster.get(name) for name in ("launcher", "device", "device_name", "device_peak_flops", "link")},
        "addresses": _addresses(run.facts.get("nodes", [])) or None,
        **{name: hardware.get(name) for name in ("cpu_model", "memory_bytes")},
        "cores": hardware.get("cores"),
        "python_version": environment.get("software", {}).get("python"),
        "library_settings": "; ".join(f"{n}={v}" for n, v in variables.items() if n not in _OF_THE_LOCALE) or "none",
        "git_commit": git.get("commit"),
        "git_dirty": git.get("dirty"),
    }


def _addresses(nodes: list[dict[str, Any]]) -> str:
    """Return the address and the interface that each node said it has."""
    return ", ".join(
        f"{node['name']} {node['address']} ({node['interface']})".strip() for node in nodes if "address" in node
    )


def _measurements(run: Run) -> dict[str, Any]:
    facts = run.ranks[0].facts
    described = ("parameters", "gradient_bytes", "flops_per_sample", "exchange", "library", "library_version")
    return {
        "host": ", ".join(hosts_of(run)),
        **{name: facts.get(name) for name in described},
        **throughput_of(run),
        **communication_of(run),
        "settled_at_step": settled_at(slowest_training(run).step_seconds),
    }
