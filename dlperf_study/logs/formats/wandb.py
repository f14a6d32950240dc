"""Runs that Weights & Biases kept offline, whichever program recorded them."""

from dlperf_study.logs.formats._scalars import scalar_format
from dlperf_study.logs.wandb_files import HISTORY_ROW

FORMAT = scalar_format(
    "wandb",
    "Weights & Biases",
    "wandb/wandb, the file run-*.wandb of a run of any program, offline or synchronized",
    HISTORY_ROW,
    "where every rank calls wandb.init, each has a run of its own, which its name does not tell",
)
