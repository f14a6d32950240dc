"""The tables of the audit's page."""

from dlperf_study.audit import checks
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.paths import StudyPaths
from dlperf_study.report.tables import audit_tables
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import write_titled

ONE, TWO = configuration(), configuration(devices_per_node=2)
SLOW = Recipe(computation_seconds=0.2)


def test_every_check_is_listed_with_what_it_examined(mixed: Dataset) -> None:
    examined, _ = audit_tables.ours(mixed)
    assert len(examined.rows) == len(checks.names())
    counts = dict(zip(examined.column("Of what"), examined.column("Examined"), strict=True))
    assert int(counts["ratios"]) > 0
    assert "nothing to examine" in examined.column("Result")


def test_what_was_found_says_how_and_where(paths: StudyPaths) -> None:
    _, found = audit_tables.ours(write_titled(paths, [Planned(ONE), Planned(TWO, SLOW)]))
    [row] = [row for row in found.rows if row[1].text == "falling"]
    severity, _, computation, cells = (cell.text for cell in row)
    assert severity == "warning"
    assert computation.startswith("from 1 to 2 devices the rate goes from")
    assert cells == f"example / {ONE.identity} / throughput; example / {TWO.identity} / throughput"
    assert row[2].footnote.startswith("Possible explanations: more processes than cores; or ")


def test_a_table_without_diagnostics_says_so(paths: StudyPaths) -> None:
    _, found = audit_tables.ours(write_titled(paths, [Planned(ONE)]))
    assert "The audit has no diagnostic about our numbers." in found._repr_html_()
    assert "the letters lead to" not in found.caption


def test_published_sources_are_those_the_study_names(paths: StudyPaths) -> None:
    examined, found = audit_tables.published(write_titled(paths, [Planned(ONE)]))
    assert "tensorpack_multigpu" in examined.caption
    assert "p2.16xlarge has 16 × K80" in found._repr_html_()
    assert found.column("Severity")[0] == "error"


def test_a_study_without_sources_says_so(paths: StudyPaths) -> None:
    for table in audit_tables.published(write_titled(paths, [Planned(ONE)], published=())):
        assert "The study names no published source." in table._repr_html_()


def test_the_tables_can_be_saved(mixed: Dataset, paths: StudyPaths) -> None:
    for table in (*audit_tables.ours(mixed), *audit_tables.published(mixed)):
        table.save(paths)
    assert len(list(paths.tables.glob("audit-*.tex"))) == 4
