"""Columns on the share of the cores that the ranks of a run could use."""

from dlperf_study.columns.column import FLOAT, Column, R

CPU_LIMIT = (
    Column(
        "used_cores",
        "Used cores",
        "cores",
        FLOAT,
        "CPU seconds of a training process with a CPU limit / seconds of its training window; of the rank with most",
        R,
    ),
    Column(
        "throttled_share",
        "Throttled",
        "",
        FLOAT,
        "share of the kernel's periods of 100 ms in the training window in which a rank with a CPU limit had used up "
        "its part and waited for the next; of the rank that waited most often",
        R,
    ),
)
