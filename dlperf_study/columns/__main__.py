"""Writes the registry: ``python -m dlperf_study.columns``."""

from dlperf_study.columns import COLUMNS_PAGE, as_markdown

COLUMNS_PAGE.write_text(as_markdown(), encoding="utf-8")
