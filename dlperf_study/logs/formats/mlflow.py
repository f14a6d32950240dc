"""Runs in the file store of MLflow, whichever program recorded them."""

from dlperf_study.logs.formats._scalars import scalar_format
from dlperf_study.logs.mlflow_runs import METRIC_ROW

FORMAT = scalar_format(
    "mlflow",
    "MLflow",
    "mlflow/mlflow, the folder mlruns/EXPERIMENT/RUN of a run of any program",
    METRIC_ROW,
    "a program that gives no step has recorded everything at step 0",
)
