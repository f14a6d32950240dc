"""Diagnostics by kind on the page that has the details, and one line on every other page."""

from dataclasses import replace

import pytest

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report.tables.diagnostic_tables import DiagnosticOverview, diagnostic_groups, is_file
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import study


def busy(configurations: int = 2, **changes: object) -> Dataset:
    planned = [Planned(configuration(seed=seed), Recipe(busy_cores=1.5)) for seed in range(configurations)]
    return study(*planned, **changes)


def test_diagnostics_of_one_subject_are_one_group_with_their_number(mixed):
    dataset = busy()
    [group] = [group for group in diagnostic_groups(dataset) if group.subject == "Background load"]
    assert (group.severity, group.count, group.configurations) == ("warning", 6, "all 2 configurations")
    assert len(group.rows) == 2
    assert sum(group.count for group in diagnostic_groups(mixed)) == len(mixed.diagnostics), "none is lost"


def test_a_few_of_many_configurations_are_named_and_more_are_counted():
    dataset = busy(configurations=6)
    configuration_ids = dataset.diagnostics["configuration_id"].dropna().unique()
    for count, named in ((1, "Seed 0 · 1 device"), (4, "4 of 6 configurations")):
        rows = dataset.diagnostics[dataset.diagnostics["configuration_id"].isin(configuration_ids[:count])]
        rows = rows[rows["subject"] == "background_cores"]
        [group] = diagnostic_groups(replace(dataset, diagnostics=rows))
        assert group.configurations == named


@pytest.mark.usefixtures("on_page")
def test_details_are_on_quality_or_on_the_summary_where_nobody_asks_for_quality():
    dataset = busy()
    quality = DiagnosticOverview(dataset, "quality")._repr_html_()
    assert '<h2 id="diagnostics">' in quality
    assert "<details" in quality
    assert "disturbed by background load: 1.50 cores" in quality
    line = DiagnosticOverview(dataset, "scaling")._repr_html_()
    assert '<a href="quality.html#diagnostics">6 warnings</a>' in line
    assert "<details" not in line
    dataset = busy(sections=("scaling",))
    assert "<details" in DiagnosticOverview(dataset, "")._repr_html_()
    assert 'href="index.html#diagnostics"' in DiagnosticOverview(dataset, "scaling")._repr_html_()


@pytest.mark.usefixtures("on_page")
def test_an_error_is_marked_as_one(snapshot):
    dataset = busy()
    lost = {"subject": "throughput", "message": "<b>", "severity": "error"}
    damaged = replace(dataset, diagnostics=dataset.diagnostics.iloc[:1].assign(**lost))
    line = DiagnosticOverview(damaged, "scaling")._repr_html_()
    assert '<p class="diagnostics error">' in line
    assert line == snapshot
    assert "&lt;b&gt;" in DiagnosticOverview(damaged, "quality")._repr_html_()


@pytest.mark.usefixtures("on_page")
def test_every_page_keeps_its_diagnostics_as_a_table(paths):
    dataset = busy()
    for topic in ("", "scaling", "quality"):
        DiagnosticOverview(dataset, topic).save(paths)
    names = {path.name for path in paths.tables.glob("*.tex")}
    assert names == {"diagnostics.tex", "diagnostics-scaling.tex", "diagnostics-quality.tex"}


@pytest.mark.parametrize(("subject", "is_of_file"), [("r50.log", True), ("1n1g/r50", True), ("throughput", False)])
def test_a_file_is_known_by_a_dot_or_a_folder_in_its_name(subject, is_of_file):
    assert is_file(subject) == is_of_file
