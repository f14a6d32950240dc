"""Sentences on what training took besides time: energy, memory, and clocks that were limited."""

from collections.abc import Iterator

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.formatting import THIN_SPACE, plain, unit_of
from dlperf_study.report.sentences.names import Names, quantity_text
from dlperf_study.wording import counted, first_of

#: The memory that decides what fits, by what it is of; the first that was counted is told.
_MEMORY = {"peak_device_bytes": "one GPU had", "peak_process_bytes": "the process of a rank held"}
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
    lowest, highest = ordered[0], ordered[-1]
    least = f"{Names(dataset).of_configuration(lowest)} takes {quantity_text(lowest, 'energy_per_sample')}"
    if lowest.identity == highest.identity:
        yield f"{least} ({covered} alone)."
        return
    most = f"{Names(dataset).of_configuration(highest)}, {quantity_text(highest, 'energy_per_sample')}"
    yield f"{least} ({covered} alone), the least; the most is that of {most}."


def on_memory(dataset: Dataset) -> Iterator[str]:
    """Yield the largest peak of memory, and which configuration has it."""
    rows = context.measured(dataset)
    for column, holder in _MEMORY.items():
        peaks = rows[rows[column].notna()].sort_values(column)
        if len(peaks):
            row = next(peaks.iloc[::-1].itertuples())
            value = getattr(row, column)
            unit = unit_of(column, [value])
            size = f"{plain(value / unit.size)} {unit.symbol}"
            yield f"At its peak {holder} {size}, with {Names(dataset).of_configuration(row)}."
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
