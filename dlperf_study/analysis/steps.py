"""The table of steps: whole columns, never an object per step."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from dlperf_study.analysis.tables import frame
from dlperf_study.columns import Table
from dlperf_study.logs.arrays import Real, Whole
from dlperf_study.logs.evidence import Run
from dlperf_study.logs.rank_log import Window


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


def _repeated_text(texts: Sequence[str], counts: Whole) -> pd.Series:
    """Return each text as often as its count, as categories in order of appearance."""
    codes, categories = pd.factorize(np.array(texts, dtype=object))
    return pd.Series(pd.Categorical.from_codes(np.repeat(codes, counts), categories=pd.Index(categories, dtype="str")))


def _numbered(counts: Whole) -> Whole:
    """Return 0 … count − 1 for each count, end to end."""
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    numbers: Whole = np.arange(counts.sum(), dtype=np.int64) - starts
    return numbers


def _losses(window: Window) -> Real:
    return window.losses if window.losses.size else np.full(window.steps, np.nan)


def _joined(parts: list[Real]) -> Real:
    return np.concatenate(parts) if parts else np.empty(0)
