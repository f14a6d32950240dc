"""The runs of one configuration, read by themselves: what its own notebook shows."""

import pandas as pd

from dlperf_study.analysis import tables
from dlperf_study.analysis.runs import run_row
from dlperf_study.analysis.steps import StepColumns
from dlperf_study.columns import Table
from dlperf_study.errors import EvidenceError
from dlperf_study.logs.evidence import read_run
from dlperf_study.logs.originals import Originals
from dlperf_study.paths import ConfigurationPaths


def runs_and_steps(paths: ConfigurationPaths) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables of runs and of steps of one configuration.

    Raises:
        EvidenceError: there is no run yet, or one can't be read.

    """
    originals = Originals()
    runs = [originals.checked(read_run(run)) for run in paths.runs()]
    if not runs:
        raise EvidenceError(f"{paths.folder}: no run yet")
    steps = StepColumns()
    for run in runs:
        steps.add(run)
    return tables.frame_of_rows(Table.RUNS, [run_row(run) for run in runs]), steps.frame()
