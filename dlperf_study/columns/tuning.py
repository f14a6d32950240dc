"""Columns of how the library of a run was tuned, as observed: it may do otherwise than it was asked."""

from dlperf_study.columns.column import STRING, Column, R

TUNING = (
    Column(
        "observed_memory_format",
        "Observed memory format",
        "",
        STRING,
        "nchw or nhwc: memory format of the output of the first convolution of a training step before all windows; "
        "missing if its sizes leave it open; what a compiler orders anew is not seen",
        R,
    ),
    Column(
        "observed_cudnn_autotune",
        "Observed cuDNN autotuning",
        "",
        STRING,
        "enabled or disabled, as the library says after this step; missing on CPUs",
        R,
    ),
    Column(
        "observed_fused_optimizer",
        "Observed parameter update",
        "",
        STRING,
        "fused, foreach or for_loop, as the optimizer says after this step; missing if it can't be asked",
        R,
    ),
)
