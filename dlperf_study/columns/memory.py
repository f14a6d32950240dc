"""Columns on the memory of a rank."""

from dlperf_study.columns.column import MAYBE_INT, RC, C, Column


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

#: What the search for the largest batch of a configuration found; all are missing while it is not over.
LARGEST_BATCH = (
    Column(
        "largest_batch",
        "Largest batch",
        "samples",
        MAYBE_INT,
        "largest batch per device that trained in a trial, up to the study's largest_batch; 0: not even 1 fits",
        C,
    ),
    Column(
        "too_large_batch",
        "Does not fit",
        "samples",
        MAYBE_INT,
        "smallest batch per device of which a trial did not fit in memory; missing where each that was tried fits",
        C,
    ),
    Column("batch_trials", "Trials", "runs", MAYBE_INT, "short runs by which the largest batch was found", C),
)
