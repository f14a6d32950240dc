"""A study in Python: its frames, selections, summaries and comparisons against the dataset they are of."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bs4 import BeautifulSoup

import dlperf_study
from dlperf_study.api.studies import Studies, StudySummary
from dlperf_study.api.study_results import StudyResults
from dlperf_study.core.errors import DlperfStudyError, RecordError
from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.dataset.dataset import collect
from dlperf_study.report import tables
from dlperf_study.report.figures import published_figures
from dlperf_study.report.page_findings import page_findings
from dlperf_study.report.tables.history_tables import condition_changes, speedup_changes, throughput_changes
from dlperf_study.report.tables.latex import latex_table
from dlperf_study.study.batch_search import trial
from tests.evidence_factory import Planned, Recipe, configuration, write_run, write_study
from tests.message_snapshots import Refused
from tests.programs.measured_ways import RECORDER, write_way

SLOWER = Recipe(exposed_communication_seconds=0.05)


def planned(recipe: Recipe) -> list[Planned]:
    """Two models on one and two devices; a run that failed, and a precision that can't run."""
    entries = []
    for model in ("resnet50", "mobilenet_v2"):
        one, two = (configuration(model=model, devices_per_node=count) for count in (1, 2))
        entries += [Planned(one, recipe, baseline=one), Planned(two, recipe, baseline=one)]
    four, failed = configuration(model="resnet50", devices_per_node=4), Recipe(status="failed", reason="it stopped")
    half = configuration(precision="fp16")
    entries.append(Planned(four, failed, runs=1, baseline=entries[0].configuration))
    return [*entries, Planned(half, unsupported="precision fp16 is not built", baseline=half)]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StudyResults]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path_factory.mktemp("outputs")))
        for name, recipe in (("example", Recipe()), ("slower", SLOWER)):
            plan = write_study(StudyPaths.of(name), planned(recipe))
            plan.changed(sections=("scaling",)).write(StudyPaths.of(name).plan_file)
        yield dlperf_study.open_study("example")


def test_the_frames_are_those_of_the_dataset_by_identity(study: StudyResults) -> None:
    dataset = study.dataset
    assert list(study.configurations.index) == list(dataset.configurations["configuration_id"])
    assert study.runs.index.names == ["configuration_id", "repetition"]
    first = dataset.runs.iloc[0]
    assert study.runs.loc[(first["configuration_id"], first["repetition"]), "throughput"] == first["throughput"]
    assert study.steps.index.names == ["configuration_id", "repetition", "rank", "window", "step"]
    assert len(study.steps) == len(dataset.steps)
    steps = dataset.steps.query(
        "configuration_id == @first.configuration_id and repetition == 1 and window == 'training'"
    )
    indexed = study.steps.loc[first["configuration_id"], 1].xs("training", level="window")
    assert indexed["seconds"].tolist() == steps["seconds"].tolist()
    assert list(study.diagnostics.columns) == [name for name in dataset.diagnostics if name != "configuration_id"]


def test_a_study_is_opened_by_its_folder_too(study: StudyResults) -> None:
    folder = study.dataset.folder.parent
    assert dlperf_study.open_study(folder).configurations.equals(study.configurations)
    with pytest.raises(RecordError, match="did you mean example"):
        dlperf_study.open_study("exampel")


def test_a_summary_has_the_means_and_intervals_by_factor(study: StudyResults) -> None:
    assert study.factors == ["model", "devices_per_node", "precision"]
    summary = study.summary("throughput", "speedup")
    assert list(summary.columns) == [
        (name, part) for name in ("throughput", "speedup") for part in ("mean", "low", "high")
    ]
    row = summary.loc[("resnet50", 2, "fp32")]
    configured = study.dataset.configurations.query("model == 'resnet50' and devices_per_node == 2").iloc[0]
    for name in ("throughput", "speedup"):
        bounds = [configured[name], configured[f"{name}_low"], configured[f"{name}_high"]]
        assert row[name].tolist() == bounds
    # 0.08 s of computation and 0.01 s of communication on two devices, none of it on one.
    assert row["speedup", "mean"] == pytest.approx(2 * 80 / 90, rel=0.02)
    assert np.isnan(summary.loc[("resnet50", 4, "fp32"), ("throughput", "mean")])
    assert list(study.summary("parameters").columns) == [("parameters", "mean")]
    assert list(study.summary().columns.levels[0]) == ["efficiency", "speedup", "throughput"]


def test_a_selection_is_a_study(study: StudyResults) -> None:
    chosen = study.sel(model="resnet50", devices_per_node=[1, 2])
    assert chosen.factors == ["devices_per_node", "precision"]
    assert set(chosen.runs.index.get_level_values("configuration_id")) <= set(chosen.configurations.index)
    assert len(chosen.sel(precision="fp32").runs) == 6
    assert chosen.steps.index.get_level_values("configuration_id").nunique() == 2
    assert chosen.sel(precision="fp32").summary("speedup").index.tolist() == [1, 2]
    summary = study.sel(world_size=4).summary()
    assert summary[("throughput", "mean")].isna().tolist() == [True], "what has no result"
    # A selection may be changed, and the study stays as it is.
    chosen.configurations["throughput"] = 0.0
    assert study.configurations["throughput"].max() > 0


def test_a_selection_without_its_baseline_keeps_its_ratios_and_their_sentences(study: StudyResults) -> None:
    chosen, name = study.sel(model="mobilenet_v2", devices_per_node=2), "speedup"
    assert (
        chosen.summary(name)[name, "mean"].item()
        == study.summary(name).loc[("mobilenet_v2", 2, "fp32"), (name, "mean")]
    )
    with_baseline = study.sel(model="mobilenet_v2").findings("scaling").sentences[0]
    assert chosen.findings("scaling").sentences[0] == with_baseline
    assert chosen.table("scaling").rows[0] in study.table("scaling").rows


@pytest.mark.parametrize(
    "values",
    [
        {"model": "resnet"},
        {"modle": "resnet50"},
        {"devices_per_node": [1, 3]},
        {"model": "mobilenet_v2", "precision": "fp16"},
    ],
    ids=str,
)
def test_a_misspelt_selection_is_refused(study: StudyResults, values: dict[str, Any], refused: Refused) -> None:
    with refused(DlperfStudyError):
        study.sel(**values)


def test_a_study_of_a_program_is_selected_by_what_it_has(tmp_path: Path, refused: Refused) -> None:
    paths = StudyPaths(tmp_path / "mine")
    write_way(paths, RECORDER)
    results = dlperf_study.open_study(paths.folder)
    assert len(results.sel(batch_per_device=32).configurations) == 2
    # What counts tokens is told of in tokens/s.
    assert results.dataset.throughput_column == "token_throughput"
    assert " tokens/s" in BeautifulSoup(results._repr_html_(), "html.parser").text
    with refused(DlperfStudyError):
        results.sel(image_size=224)


def test_other_misspelt_names_are_refused(study: StudyResults, snapshot: Any) -> None:
    messages = []
    calls = [study.table, study.findings, study.warnings]
    for call in (*(partial(call, "scalling") for call in calls), lambda: study.columns["speed"]):
        with pytest.raises(DlperfStudyError) as caught:
            call()
        messages.append(str(caught.value).partition("; the columns")[0].partition("the columns are")[0])
    with pytest.raises(DlperfStudyError):
        study.summary("model")
    assert messages == snapshot


def test_a_study_at_a_glance(study: StudyResults, snapshot: Any) -> None:
    assert repr(study) == snapshot
    page = BeautifulSoup(study._repr_html_(), "html.parser")
    cells = {row.th.text: row.td.text for row in page.find("table")("tr")}
    assert cells["runs"].startswith("12 completed")
    assert cells["configurations"].startswith("4 of 6 ")
    headline = page_findings(study.dataset, "summary").sentences[0]
    assert page.find("li").text.replace("\N{NO-BREAK SPACE}", " ") == headline
    assert "[" in headline
    assert study.plot.scaling()[0].title in ("ResNet-50: scaling", "MobileNetV2: scaling")


def test_a_comparison_has_the_changes_as_frames(study: StudyResults) -> None:
    changed = study.compare("slower")
    by_label = changed.throughputs.set_index("configuration")["change"]
    assert len(by_label) == 4
    # On two devices a step takes 0.13 s instead of 0.09 s.
    slower = [change for label, change in by_label.items() if "2 devices" in str(label)]
    assert slower == pytest.approx([90 / 130] * 2, rel=0.02)
    row = changed.throughputs.iloc[0]
    assert row["change_low"] < row["change"] < row["change_high"] < 1
    assert row[["change_against_mean", "significance"]].isna().all()
    assert repr(changed).splitlines()[0] == changed.findings().sentences[0]
    shown = changed._repr_html_()
    assert changed.findings()._repr_html_() in shown
    assert throughput_changes(changed.changes)._repr_html_() in shown
    assert speedup_changes(changed.changes)._repr_html_() in shown
    unchanged = condition_changes(changed.changes)
    assert unchanged.is_empty
    assert unchanged.title not in shown
    with pytest.raises(RecordError):
        study.compare(study)


def test_what_is_empty_in_a_notebook_names_the_section_that_the_study_file_needs(study: StudyResults) -> None:
    needed = "Add <code>comparison</code> to <code>sections</code> in the study file"
    shown = study.section("", study.table("comparison"), study.table("differences"))._repr_html_()
    assert shown.count(needed) == 2
    assert needed in study.findings("comparison")._repr_html_()
    needed = "Add <code>published</code> to <code>sections</code> in the study file"
    assert needed in study.section("", published_figures.speedups(study.dataset))._repr_html_()
    assert needed in study.findings("published")._repr_html_()


def test_the_history_has_each_session_and_its_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    one, two = (configuration(devices_per_node=count) for count in (1, 2))
    entries, paths = [Planned(one), Planned(two, SLOWER)], StudyPaths.of("example")
    write_study(paths, entries)
    once = dlperf_study.open_study("example").history
    assert once.index.tolist() == [("example", one.configuration_id), ("example", two.configuration_id)]
    assert once["change"].isna().all()
    write_study(paths.earlier_measurement(1), [Planned(one), Planned(two)])
    results = dlperf_study.open_study("example")
    history = results.history
    assert history.index.unique("session").tolist() == ["example@1", "example"]
    assert history.loc["example", "throughput"].tolist() == results.configurations["throughput"].tolist()
    assert history.loc["example@1", "change"].isna().all()
    # On two devices a step takes 0.13 s instead of 0.09 s.
    last = history.loc[("example", two.configuration_id)]
    assert last["change"] == pytest.approx(90 / 130, rel=0.02)
    assert last["change_low"] < last["change"] < last["change_high"] < 1
    assert results.sel(devices_per_node=2).history.index.unique("configuration_id").tolist() == [two.configuration_id]


def test_a_selection_is_compared_with_the_same_configurations_of_the_other_study(study: StudyResults) -> None:
    """What is not selected was measured in both, and is not said to be in one of them only."""
    changed = study.sel(devices_per_node=2).compare("slower")
    assert len(changed.throughputs) == 2
    assert len(changed.speedups) == 2, "also those whose baseline is not selected"
    assert not changed.changes.only_before + changed.changes.only_after


def test_tables_are_those_of_the_report_and_columns_say_what_they_are(study: StudyResults) -> None:
    assert study.to_latex("scaling") == latex_table(tables.scaling(study.dataset), study.dataset.plan.study)
    assert study.table("measured").rows == tables.measured(study.dataset).rows
    column = study.columns["throughput"]
    assert (column.label, column.unit) == ("Throughput", "samples/s")
    assert "throughput" in study.metrics


def test_without_xarray_the_command_that_installs_it_is_said(
    study: StudyResults, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "xarray", None)
    with refused(DlperfStudyError):
        study.to_xarray()


@pytest.mark.needs("xarray")
def test_an_xarray_has_a_dimension_for_each_factor(study: StudyResults) -> None:
    chosen = study.sel(devices_per_node=[1, 2], precision="fp32")
    data = chosen.to_xarray()
    assert dict(data.sizes) == {"model": 2, "devices_per_node": 2}
    expected = chosen.summary("speedup").loc[("resnet50", 2), ("speedup", "low")]
    assert float(data["speedup_low"].sel(model="resnet50", devices_per_node=2)) == expected


@pytest.mark.usefixtures("study")
def test_the_studies_of_a_workspace_are_listed_with_links_to_their_reports(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    studies = dlperf_study.studies()
    assert set(studies.frame.index) == {"example", "slower"}
    assert not BeautifulSoup(studies._repr_html_(), "html.parser").find_all("a")
    page = StudyPaths.of("slower").report_page
    page.parent.mkdir()
    page.touch()
    monkeypatch.chdir(page.parents[1])
    [link] = BeautifulSoup(dlperf_study.studies()._repr_html_(), "html.parser").find_all("a")
    assert link["href"] == "report/index.html"
    dlperf_study.open_study("example")
    counts = dlperf_study.studies().frame.loc["example"]
    assert 0 < counts["completed"] < counts["runs"]
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    assert len(dlperf_study.studies()) == 0


def test_the_name_of_a_folder_is_no_element_of_the_list_of_studies() -> None:
    name = "<img src=x onerror='x()'>"
    shown = BeautifulSoup(Studies([StudySummary(name, name, None, 1, 1, None)])._repr_html_(), "html.parser")
    assert not shown.find_all("img")
    assert shown.find_all("code")[0].get_text() == f"dlperf_study.open_study({name!r})"


def test_counts_of_tables_that_are_older_than_the_evidence_say_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    paths = StudyPaths.of("example")
    write_study(paths, [Planned(configuration())])
    write_run(paths, trial(configuration(), 4), 1)
    collect(paths)
    assert repr(dlperf_study.studies()).endswith("3 of 3 completed")
    write_run(paths, configuration(), 4)
    [summary] = dlperf_study.studies()
    assert (summary.runs, summary.further) == (3, 1)
    assert "; 1 further run not in its tables" in repr(dlperf_study.studies())


def test_what_is_printed_of_a_table_or_a_figure_has_its_numbers(study: StudyResults) -> None:
    table, [figure, *_] = study.table("measured"), study.plot.overview()
    printed = repr(table)
    assert printed.splitlines()[0] == table.title
    assert all(cell.printed in printed for row in table.rows for cell in row)
    assert repr(figure).startswith(f"{figure.title}. ")
    assert "samples/s" in repr(figure)
    assert "Cell(" not in printed
    scaling = study.table("scaling")
    assert {group for group, _ in scaling.grouped()} - {""} <= {*repr(scaling).splitlines()}
    assert study.dataset.diagnostics["message"].iloc[0] in repr(study.warnings())
    assert repr(study.findings()).splitlines() == list(study.findings().sentences)
    assert "Figure(" not in repr(figure)
