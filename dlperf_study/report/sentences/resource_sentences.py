"""Sentences on what training took besides time: energy, memory, and clocks that were limited."""

from collections.abc import Iterator
from typing import Any

from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.formatting import THIN_SPACE, plain, unit_of
from dlperf_study.report.sentences.names import Names, quantity_text
from dlperf_study.wording import counted, first_of

#: The memory that decides what fits, by what it is of; the first that was counted is told.
_MEMORY = {"peak_device_bytes": "one GPU has {} in use", "peak_process_bytes": "the process of a rank holds {}"}
_MOST_REASONS = 2


def on_energy(dataset: Dataset) -> Iterator[str]:
    """Yield the least and the most energy of a sample, or why there is no reading."""
    rows, runs = context.measured(dataset), context.completed_runs(dataset)
    counted_rows = rows[rows["energy_per_sample"].notna()].sort_values("energy_per_sample")
    if counted_rows.empty:
        reasons = list(dict.fromkeys(runs["energy_obstacle"].dropna()))
        if reasons:
            yield f"No energy is reported: {first_of(reasons, _MOST_REASONS)}."
        return
    covered = first_of(list(dict.fromkeys(runs["energy_of"].dropna())))
    ordered = list(counted_rows.itertuples())
    ends = list(dict.fromkeys([_energy_text(dataset, ordered[0]), _energy_text(dataset, ordered[-1])]))
    amounts = f"from {ends[0]}, to {ends[1]}" if len(ends) > 1 else ends[0]
    yield f"A trained sample takes {amounts} ({covered} alone)."


def _energy_text(dataset: Dataset, row: Any) -> str:
    """Return the energy of a sample with its interval, and of which configuration it is."""
    joules = quantity_text(row, "energy_per_sample").replace(COLUMNS["energy_per_sample"].unit, "J")
    return f"{joules} with {Names(dataset).of_configuration(row)}"


def on_memory(dataset: Dataset) -> Iterator[str]:
    """Yield the largest peak of memory, and which configuration has it."""
    rows = context.measured(dataset)
    for column, sentence in _MEMORY.items():
        peaks = rows[rows[column].notna()].sort_values(column)
        if len(peaks):
            row = next(peaks.iloc[::-1].itertuples())
            value = getattr(row, column)
            unit = unit_of(column, [value])
            size = f"{plain(value / unit.size)} {unit.symbol}"
            yield f"At its peak {sentence.format(size)}, with {Names(dataset).of_configuration(row)}."
            return


def on_clocks(dataset: Dataset) -> Iterator[str]:
    """Yield in how many runs power or temperature limited clocks; nothing where that is not known."""
    shares = context.completed_runs(dataset)["clock_limited_share"].dropna()
    limited = shares[shares > 0]
    if len(limited):
        most = f"{100 * limited.max():.0f}{THIN_SPACE}%"
        of_runs = f"in {len(limited)} of {counted(len(shares), 'run')}"
        yield f"Power or temperature limited the clock of a GPU {of_runs}, in up to {most} of the samples."
    elif len(shares):
        yield "Neither power nor temperature limited the clock of a GPU in any sample."
