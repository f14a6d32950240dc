"""The pages of ingested logs: what nobody stated is said to be missing, and nothing claims to have been measured."""

import re
from dataclasses import replace

import pytest

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.report import context, figures, tables
from dlperf_study.report.formatting import MISSING
from dlperf_study.report.page_findings import page_findings
from dlperf_study.report.series import all_series
from dlperf_study.report.tables.diagnostic_tables import diagnostic_rows, diagnostics_about
from dlperf_study.report.tables.table import Cell
from tests.logs.ingest.conftest import Ingest, WriteLog, folder, ingested, paths, small_archive, write_log

__all__ = ["folder", "ingested", "paths", "small_archive", "write_log"]


@pytest.fixture
def dataset(small_archive: None, write_log: WriteLog, ingested: Ingest) -> Dataset:
    write_log("1n1g/r50_b128_fp32_4.log", seed=4, steps=60)
    return ingested()


#: What is true of runs that this project measured, and of no log.
OF_MEASURED = ("Measured", "measured on", "planned", "Planned", "can run here", "can't run here")
NOT_OF_LOGS = (*OF_MEASURED, "not recorded", "rounds", "nan", "<NA>", "; ;")
PAGES = ("summary", "scaling", "communication", "comparison", "quality", "audit")
TABLES = (tables.measured, tables.scaling, tables.stability, tables.failures, tables.diagnostics, tables.about)


def test_no_table_or_sentence_on_logs_claims_that_something_was_measured(dataset, snapshot):
    made = [build(dataset) for build in (*TABLES, tables.environments, tables.unsupported)]
    assert [table.name for table in made[: len(TABLES)] if table.is_empty] == []
    shown = [page_findings(dataset, page) for page in PAGES]
    texts = [*(f"{table.caption} {table.notes} {table.empty}" for table in made)]
    texts += [" ".join((*page.sentences, page.conditions)) for page in shown]
    assert [(words, text) for text in texts for words in NOT_OF_LOGS if words in text] == []
    assert [table.caption if table.rows else table.empty for table in made] == snapshot
    assert {page: answer.sentences for page, answer in zip(PAGES, shown, strict=True)} == snapshot
    assert context.merging(dataset) == snapshot
    runs = dataset.runs.assign(device_name="Tesla V100")
    assert "on Tesla V100; " in context.conditions(replace(dataset, runs=runs))


def test_what_was_left_out_is_a_footnote_and_the_window_of_dlperf_a_column(dataset, snapshot):
    table = tables.stability(dataset)
    labels = [heading.label for heading in table.headings]
    assert "Left out" not in labels
    assert list(table.footnotes) == snapshot
    assert "20 to 119" in table.column(COLUMNS["fixed_window"].label)
    assert COLUMNS["printed_throughput"].label not in labels
    runs = dataset.runs.copy()
    runs.loc[runs.index[0], "printed_throughput"] = "tokens/s of each device"
    assert COLUMNS["printed_throughput"].label in [
        h.label for h in tables.stability(replace(dataset, runs=runs)).headings
    ]


def test_the_same_diagnostic_about_many_logs_is_one_row_and_a_footnote_of_their_throughputs(dataset, snapshot):
    [cells] = [
        cells for cells in diagnostic_rows(dataset, diagnostics_about(dataset)) if "represent all" in cells[4].text
    ]
    assert [cell.text for cell in cells[1:]] == snapshot
    scaling = tables.scaling(dataset)
    [footnote] = [str(footnote) for footnote in scaling.footnotes if "about the log" in str(footnote)]
    assert [cell.footnote for row in scaling.rows for cell in row].count(footnote) == 2


@pytest.mark.parametrize("figure", [figures.overview, figures.scaling, figures.steps])
def test_every_figure_of_the_pages_can_be_drawn(dataset, figure):
    [made] = figure(dataset)  # type: ignore[attr-defined,misc]
    assert made.drawing is not None
    assert "not stated:" in made.caption
    assert "slowest rank, relative" not in made.caption


def test_stalls_are_drawn_although_they_do_not_count_and_the_start_is_grey(folder, write_log, ingested):
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


def test_diagnostics_and_reasons_name_logs_as_they_lie_below_the_folder(dataset, folder):
    assert str(folder) not in str(dataset.diagnostics.to_dict())
    diagnostic = dataset.diagnostics.iloc[[0]].assign(subject="1n1g/r50_b128_fp32_1.log", message="one line is odd")
    [cells] = diagnostic_rows(dataset, diagnostic)
    assert cells[3] == Cell("1n1g/r50_b128_fp32_1.log", code=True)
    reason = "1n1g/r50_b128_fp32_4.log: odd"
    runs = dataset.runs.assign(reason=dataset.runs["reason"].mask(dataset.runs["status"] == "failed", reason))
    assert tables.failures(replace(dataset, runs=runs)).column(COLUMNS["reason"].label) == [reason]


def test_throughputs_of_runs_have_the_digits_of_published_ones_and_values_next_to_a_throughput_its_own(dataset):
    for name in ("throughput", "fixed_window_mean_step_throughput"):
        shown = [text for text in tables.stability(dataset).column(COLUMNS[name].label) if text != MISSING]
        assert len(set(shown)) > 6, "three digits are alike within each of three configurations"
        assert all(text[-3] == "." for text in shown)
    columns = [tables.measured(dataset).column(COLUMNS[name].label) for name in ("throughput", "mean_step_throughput")]
    decimals = [[len(text.partition(".")[2]) for text in column] for column in columns]
    assert decimals[0] == decimals[1]


def test_configurations_with_unequally_many_logs_are_one_line(dataset):
    assert dataset.configurations["repetitions"].nunique() == 2
    assert len(all_series(dataset)) == 1
