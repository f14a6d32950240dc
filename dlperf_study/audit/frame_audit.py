"""The audit of a pandas frame: its diagnostics as a frame, and as the command ``audit`` prints them."""

from functools import cached_property

import pandas as pd

from dlperf_study.audit.audit import audit, describe
from dlperf_study.audit.checks import AuditResult, diagnostics_of, most_severe_first
from dlperf_study.audit.reading.table_file import read_frame
from dlperf_study.audit.result_frames import METRIC, VALUE, results_of_frame


class FrameAudit:
    """What the checks say of a table: ``diagnostics``, errors first, and the ``results`` of all checks."""

    def __init__(self, results: list[AuditResult]) -> None:
        self.results = results

    @cached_property
    def diagnostics(self) -> pd.DataFrame:
        """A row for each diagnostic: ``severity``, ``check``, ``cells``, ``computation``, ``explanations``.

        ``cells`` and ``explanations`` are tuples of texts.
        """
        rows = []
        for diagnostic in most_severe_first(diagnostics_of(self.results)):
            facts = (str(diagnostic.severity), diagnostic.check, tuple(diagnostic.keys))
            rows.append((*facts, diagnostic.computation, diagnostic.explanations))
        return pd.DataFrame(rows, columns=["severity", "check", "cells", "computation", "explanations"])

    def __repr__(self) -> str:
        return describe(self.results)

    def _repr_html_(self) -> str:
        examined = sum(result.examined for result in self.results)
        return f"<p>{examined} items examined by {len(self.results)} checks</p>{self.diagnostics.to_html(index=False)}"


def audit_frame(frame: pd.DataFrame) -> FrameAudit:
    """Recompute a table of results from its own numbers.

    ``frame``: as ``published`` returns it, with a number in each row, or with a row for each configuration and a column
    for each metric and condition, named as in any table that the command ``audit`` reads. Numbers that are texts keep
    the zeros they were printed with.

    Raises TableError if it has no metric, or fields that are no numbers.
    """
    is_long = {METRIC, VALUE} <= set(frame.columns)
    return FrameAudit(audit(results_of_frame(frame) if is_long else read_frame(frame).results))
