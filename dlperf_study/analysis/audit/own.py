"""The results of a study of our own as the checks see them."""

import pandas as pd

from dlperf_study.analysis.audit.cell import THROUGHPUT
from dlperf_study.analysis.audit.frames import METRIC, VALUE, long_frame, results_of_frame
from dlperf_study.analysis.audit.results import Results
from dlperf_study.analysis.dataset import Dataset
from dlperf_study.analysis.scaling import series_factors
from dlperf_study.columns import PRODUCTS
from dlperf_study.study.outcome import Outcome


def results_of_dataset(dataset: Dataset) -> Results:
    """Return the configurations of a study, and the runs they summarise; none of these numbers is rounded."""
    summaries = long_frame(_configurations(dataset), dataset.plan.study)
    return results_of_frame(pd.concat([summaries, _runs(dataset, summaries)], ignore_index=True))


def _configurations(dataset: Dataset) -> pd.DataFrame:
    """Return the table of configurations with the series of each, the peak of its devices, and what is no measurement.

    Devices and global batch were reckoned from the parameters: held against these they would always be right.
    """
    rows = dataset.configurations
    lines = rows.groupby(series_factors(rows, dataset.plan.scaling), sort=False, dropna=False).ngroup()
    peaks = dataset.runs.groupby("identity")["device_peak_flops"].first()
    return rows.assign(
        series="series " + (lines + 1).astype(str),
        device_peak_flops=rows["identity"].map(peaks),
        inferred=", ".join(PRODUCTS),
    )


def _runs(dataset: Dataset, summaries: pd.DataFrame) -> pd.DataFrame:
    """Return the throughput of each completed run, with all that is said of its configuration."""
    completed = dataset.runs[dataset.runs["outcome"] == Outcome.COMPLETED]
    runs = completed[["identity", "repetition", THROUGHPUT]].rename(columns={THROUGHPUT: VALUE})
    rates = summaries[summaries[METRIC] == THROUGHPUT].drop(columns=[VALUE, "low", "high"], errors="ignore")
    joined = runs.merge(rates, on="identity")
    key = joined["cell"] + "/" + joined["repetition"].astype(str)
    return joined.assign(estimator="run", runs_of=joined["cell"], cell=key)
