"""The figures of the report, as SVG and PDF: each function takes the dataset and yields one figure per model."""

from dlperf_study.report.figures.study_figures import communication, comparison, overview, scaling, steps, stragglers

__all__ = ["communication", "comparison", "overview", "scaling", "steps", "stragglers"]
