"""Columns on the memory of a rank."""

from dlperf_study.columns.column import MAYBE_INT, RC, Column


def _peak(kind: str, label: str, meaning: str) -> Column:
    """Return the column on a kind of memory, of the rank that has most of it."""
    definition = f"{meaning}: the most of the training window, of the rank with most, of configurations of all runs"
    return Column(f"peak_{kind}_bytes", label, "bytes", MAYBE_INT, definition, RC)


#: By the kind of memory that the end line of a rank log names.
PEAKS = (
    _peak("allocated", "Peak of tensors", "memory that the library allocated for tensors on the device"),
    _peak("reserved", "Peak reserved", "memory that the library took from the GPU, what it keeps for later included"),
    _peak("process", "Peak of the process", "resident memory of the training process on its host"),
)
