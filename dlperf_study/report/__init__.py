"""Answers to pages: style, tables, figures, HTML."""

from pathlib import Path


def build(study: str) -> Path:
    """Build the report of ``study``; return the page a person opens first. See :func:`pages.build`."""
    from dlperf_study.report.pages import build as build_pages

    return build_pages(study)
