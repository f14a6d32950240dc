"""The tables of the audit's page."""

from dlperf_study.audit import checks
from dlperf_study.report.tables import audit_tables
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import study

ONE, TWO = configuration(), configuration(devices_per_node=2)
SLOW = Recipe(compute_seconds=0.2)


def test_every_check_is_listed_with_what_it_examined_or_named_below(mixed):
    examined, _ = audit_tables.measured_here(mixed)
    idle = examined.notes[-1].removeprefix("Nothing to examine: ").removesuffix(".").split(", ")
    assert len(examined.rows) + len(idle) == len(checks.names())
    assert "0" not in examined.column("Examined")
    assert {name.replace(" ", "_") for name in idle} < set(checks.names())
    counts = dict(zip(examined.column("Of what"), examined.column("Examined"), strict=True))
    assert int(counts["ratios"]) > 0


def test_what_was_found_says_how_and_where_and_nothing_found_says_so(snapshot):
    _, diagnostics = audit_tables.measured_here(study(Planned(ONE), Planned(TWO, SLOW)))
    [row] = [row for row in diagnostics.rows if row[1].text == "falling"]
    severity, _, computation, cells = (cell.text for cell in row)
    assert severity == "warning"
    assert cells == f"example / {ONE.configuration_id} / throughput; example / {TWO.configuration_id} / throughput"
    assert [computation, row[2].footnote] == snapshot
    _, diagnostics = audit_tables.measured_here(study(Planned(ONE)))
    assert diagnostics.is_empty
    without_sources = list(audit_tables.published(study(Planned(ONE), published=())))
    assert [table.rows for table in without_sources] == [()] * 2
    assert [diagnostics.caption, diagnostics.empty, *(table.empty for table in without_sources)] == snapshot
