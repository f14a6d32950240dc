"""The tables of the report, as HTML and LaTeX: each function takes the dataset and returns one table."""

from dlperf_study.report.tables.about_tables import about, environments
from dlperf_study.report.tables.communication_tables import (
    communication,
    data_sources,
    exchange,
    factors,
    nccl,
    timeline,
)
from dlperf_study.report.tables.quality_tables import rounds, stability, step_times
from dlperf_study.report.tables.resource_tables import devices, energy, memory, telemetry
from dlperf_study.report.tables.run_tables import runs
from dlperf_study.report.tables.study_tables import (
    comparison,
    diagnostics,
    differences,
    failures,
    measured,
    scaling,
    unsupported,
)

__all__ = [
    "about",
    "communication",
    "comparison",
    "data_sources",
    "devices",
    "diagnostics",
    "differences",
    "energy",
    "environments",
    "exchange",
    "factors",
    "failures",
    "measured",
    "memory",
    "nccl",
    "rounds",
    "runs",
    "scaling",
    "stability",
    "step_times",
    "telemetry",
    "timeline",
    "unsupported",
]
