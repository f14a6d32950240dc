"""The tables of the report, as HTML and LaTeX: each function takes the dataset and returns one table."""

from dlperf_study.report.tables.study_tables import (
    about,
    communication,
    comparison,
    diagnostics,
    differences,
    environments,
    failures,
    measured,
    scaling,
    stability,
    timeline,
    unsupported,
)

__all__ = [
    "about",
    "communication",
    "comparison",
    "diagnostics",
    "differences",
    "environments",
    "failures",
    "measured",
    "scaling",
    "stability",
    "timeline",
    "unsupported",
]
