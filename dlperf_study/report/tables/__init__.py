"""The tables of the report, as HTML and LaTeX: each function takes the dataset and returns one table."""

from dlperf_study.report.tables.about_tables import about, environments, rules
from dlperf_study.report.tables.diagnostic_tables import diagnostics
from dlperf_study.report.tables.page_tables import (
    collectives,
    communication,
    communication_alone,
    data_loaders,
    devices,
    energy,
    memory,
    nccl,
    network,
    pipeline,
    rounds,
    stability,
    step_times,
    telemetry,
)
from dlperf_study.report.tables.prediction_tables import back_test, further_measurements, not_predicted, predictions
from dlperf_study.report.tables.study_tables import (
    comparison,
    differences,
    failures,
    measured,
    runs,
    scaling,
    unsupported,
)
from dlperf_study.report.tables.waterfall_table import causes, exposed_kinds

__all__ = [
    "about",
    "back_test",
    "causes",
    "collectives",
    "communication",
    "communication_alone",
    "comparison",
    "data_loaders",
    "devices",
    "diagnostics",
    "differences",
    "energy",
    "environments",
    "exposed_kinds",
    "failures",
    "further_measurements",
    "measured",
    "memory",
    "nccl",
    "network",
    "not_predicted",
    "pipeline",
    "predictions",
    "rounds",
    "rules",
    "runs",
    "scaling",
    "stability",
    "step_times",
    "telemetry",
    "unsupported",
]
