"""The pages of ingested logs: what nobody stated is said to be missing, and nothing claims to have been measured."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context, figures, sentences, tables
from dlperf_study.report.formatting import MISSING
from dlperf_study.report.series import all_series
from dlperf_study.report.tables.diagnostic_rows import diagnostic_rows
from dlperf_study.report.tables.table import Cell, Table
from tests.ingest.conftest import Ingest, WriteLog, folder, ingested, paths, small_archive, write_log

__all__ = ["folder", "ingested", "paths", "small_archive", "write_log"]


@pytest.fixture
def dataset(small_archive: None, write_log: WriteLog, ingested: Ingest) -> Dataset:
    write_log("1n1g/r50_b128_fp32_4.log", seed=4, steps=60)
    return ingested()


@pytest.mark.parametrize(
    "table",
    [
        tables.measured,
        tables.scaling,
        tables.stability,
        tables.failures,
        tables.diagnostics,
        tables.about,
    ],
)
def test_every_table_of_the_pages_can_be_made(dataset: Dataset, table: Callable[[Dataset], Table]) -> None:
    made = table(dataset)
    assert made.rows
    assert "<NA>" not in str(made)
    assert "Measured" not in made.caption
    assert "not recorded" not in made.caption
    assert "; ;" not in made.caption
    assert "merged by the slowest" not in made.caption


@pytest.mark.parametrize("figure", [figures.overview, figures.scaling, figures.steps])
def test_every_figure_of_the_pages_can_be_drawn(dataset: Dataset, figure: Callable[[Dataset], object]) -> None:
    [made] = figure(dataset)  # type: ignore[attr-defined,misc]
    assert made.drawing is not None
    assert "not stated: image size" in made.caption
    assert "slowest rank, relative" not in made.caption


def test_stalls_are_drawn_although_they_do_not_count_and_the_start_is_grey(
    folder: Path, write_log: WriteLog, ingested: Ingest
) -> None:
    for repetition in (1, 2, 3):
        log = write_log(f"1n1g/r50_b128_fp32_{repetition}.log", seed=repetition)
        stalled = re.sub(r"(train batch 60\].*elapse )\S+", r"\g<1>9.0000", log.read_text())
        log.write_text(stalled)
    [made] = figures.steps(ingested())
    assert made.drawing is not None
    panel = made.drawing.axes[0]
    assert len(panel.get_lines()) == 3
    assert all(max(line.get_ydata()[line.get_xdata() > 0]) > 10 for line in panel.get_lines())
    [grey] = panel.patches
    assert (grey.get_x(), grey.get_x() + grey.get_width()) == (-5.5, -0.5)


def test_runs_show_what_was_left_out_and_the_window_of_dlperf(dataset: Dataset) -> None:
    text = str(tables.stability(dataset))
    for expected in ("start-up: the first 5 lines", "20 to 119", "paddle resnet50"):
        assert expected in text
    assert "the run does not count" in text


def test_a_rate_that_some_ranks_printed_for_all_is_diagnosed_where_it_is_shown(dataset: Dataset) -> None:
    scaling = tables.scaling(dataset)
    assert str(scaling).count("diagnostics about the log of runs 1 to 3") == 2
    assert "runs 1, 2, 3 and 4" not in str(scaling)
    assert "only 1 of 8 to 80 ranks printed" in str(tables.diagnostics(dataset, "scaling"))


def test_the_rule_of_the_format_is_named(dataset: Dataset) -> None:
    assert "paddle resnet50, s of one process: global batch / the slowest rank's step" in context.merging(dataset)


def test_printed_numbers_of_two_kinds_are_told_apart(dataset: Dataset) -> None:
    assert "tokens/s of each device" not in str(tables.stability(dataset))
    runs = dataset.runs.copy()
    runs.loc[runs.index[0], "printed_rate"] = "tokens/s of each device"
    assert "tokens/s of each device" in str(tables.stability(replace(dataset, runs=runs)))


def test_what_is_not_stated_is_listed_once_at_the_end_of_a_caption(dataset: Dataset) -> None:
    caption = context.conditions(dataset)
    assert caption.startswith("Printed by other programs; devices: 1, 8 and 80; ")
    assert caption.endswith("; weak scaling; not stated: image size, threads per device, data source, device, link.")


def test_a_device_that_was_stated_is_named(dataset: Dataset) -> None:
    runs = dataset.runs.assign(device_name="Tesla V100")
    assert context.conditions(replace(dataset, runs=runs)).startswith("Printed by other programs on Tesla V100; ")


def test_diagnostics_name_logs_as_they_lie_below_the_folder(dataset: Dataset, folder: Path) -> None:
    assert str(folder) not in str(dataset.diagnostics.to_dict())
    diagnostic = dataset.diagnostics.iloc[[0]].assign(subject="1n1g/r50_b128_fp32_1.log", message="one line is odd")
    [cells] = diagnostic_rows(replace(dataset, diagnostics=diagnostic))
    assert cells[3] == Cell("1n1g/r50_b128_fp32_1.log", code=True)


def test_a_reason_names_logs_as_they_are(dataset: Dataset) -> None:
    reason = "1n1g/r50_b128_fp32_4.log: odd"
    runs = dataset.runs.assign(reason=dataset.runs["reason"].mask(dataset.runs["outcome"] == "failed", reason))
    assert tables.failures(replace(dataset, runs=runs)).column(COLUMNS["reason"].label) == [reason]


def test_the_same_diagnostic_about_many_logs_is_one_row(dataset: Dataset) -> None:
    [cells] = [cells for cells in diagnostic_rows(dataset) if "represent all" in cells[4].text]
    assert [cell.text for cell in cells[1:4]] == ["8 devices and 80 devices on 10 nodes", "1, 2, 3", "6 logs"]
    assert cells[4].text == "only 1 of 8 to 80 ranks printed: they represent all, because the ranks step together"


def test_pages_of_logs_have_no_sentence_about_measured_runs(dataset: Dataset) -> None:
    shown = [build(dataset)._repr_html_() for build in (tables.about, tables.environments, tables.unsupported)]
    false = ("planned", "Planned", "Where it was measured", "can run here", "not recorded")
    assert [words for words in false for html in shown if words in html] == []
    assert "10 runs among the logs" in shown[0]
    assert "The devices, link and library of these programs are not declared" in shown[1]
    assert "There are logs of every declared configuration." in shown[2]


def test_rates_of_runs_have_the_digits_of_published_ones(dataset: Dataset) -> None:
    for name in ("throughput", "fixed_window_mean_of_rates"):
        shown = [text for text in tables.stability(dataset).column(COLUMNS[name].label) if text != MISSING]
        assert len(set(shown)) > 6, "three digits are alike within each of three configurations"
        assert all(text[-3] == "." for text in shown)


def test_values_next_to_a_throughput_have_its_digits(dataset: Dataset) -> None:
    columns = [tables.measured(dataset).column(COLUMNS[name].label) for name in ("throughput", "mean_of_rates")]
    decimals = [[len(text.partition(".")[2]) for text in column] for column in columns]
    assert decimals[0] == decimals[1]


def test_what_was_left_out_is_a_footnote_and_no_narrow_column(dataset: Dataset) -> None:
    table = tables.stability(dataset)
    assert "Left out" not in [heading.label for heading in table.headings]
    assert "left out: start-up: the first 5 lines, up to step 4" in table.footnotes


def test_configurations_with_unequally_many_logs_are_one_line(dataset: Dataset) -> None:
    assert dataset.configurations["repeats"].nunique() == 2
    assert len(all_series(dataset)) == 1


def test_scaling_of_logs_says_that_their_order_is_unknown(dataset: Dataset) -> None:
    notes = " ".join(tables.scaling(dataset).notes)
    assert "Logs do not say in which order the runs were made" in notes
    assert "not measured in rounds" not in notes


@pytest.mark.parametrize("page", ["summary", "scaling", "communication", "comparison", "quality", "audit"])
def test_no_sentence_on_logs_claims_that_something_was_measured(dataset: Dataset, page: str) -> None:
    shown = getattr(sentences, page)(dataset)
    text = " ".join((*shown.sentences, shown.conditions))
    assert [
        words for words in ("Measured", "planned", "can't run here", "nan", "<NA>", "not recorded") if words in text
    ] == []
    assert shown.conditions.startswith("Printed by other programs · ")
    if page == "scaling":
        assert " times [" in shown.sentences[0]
