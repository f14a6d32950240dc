"""Every check, on tables that are right and on tables that are wrong.

A case of the tables in this folder is what the check yields, a letter for each examined item, and the rows of a table:
``.`` for nothing wrong, else the first letter of the severity. The text and the cells of a diagnostic are a snapshot.
"""

import pytest

from dlperf_study.audit.checks import AuditDiagnostic, load, names
from tests.audit.checks import conventions, curves, peaks, plausibility, ratios, runs, stages, throughputs, transformers
from tests.audit.tables import Cases, results

CASES: Cases = {}
for module in (conventions, curves, peaks, plausibility, throughputs, ratios, runs, stages, transformers):
    CASES |= module.CASES


def test_every_check_has_a_table_that_is_right_and_one_that_is_wrong():
    assert set(CASES) == set(names())
    for cases in CASES.values():
        assert any(set(status) == {"."} for status, _ in cases.values())
        assert any(set(status) & {"E", "W", "N"} for status, _ in cases.values())


@pytest.mark.parametrize(("check", "case"), [(check, case) for check, cases in CASES.items() for case in cases])
def test_a_check_examines_a_table(check, case, snapshot):
    status, rows = CASES[check][case]
    outcomes = list(load(check).examine(results(rows)))
    diagnostics = [outcome for outcome in outcomes if isinstance(outcome, AuditDiagnostic)]
    assert "".join(each.severity[0].upper() if each in diagnostics else "." for each in outcomes) == status
    for diagnostic in diagnostics:
        explained = [f"  or: {explanation}" for explanation in diagnostic.explanations]
        assert "\n".join([diagnostic.computation, f"  {', '.join(diagnostic.keys)}", *explained]) == snapshot
