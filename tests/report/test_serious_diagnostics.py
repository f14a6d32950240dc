"""What makes a number doubtful is first on every surface, with a mark at each of its numbers."""

import csv
import io
import json
import re
from dataclasses import replace

import pytest

from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.dataset import Dataset, collect
from dlperf_study.dataset.serious_diagnostics import serious_diagnostics
from dlperf_study.records.run_agreement import TRAINED_APART
from dlperf_study.report import tables
from dlperf_study.report.page_findings import page_findings
from dlperf_study.report.paper import write_paper
from dlperf_study.report.tables.diagnostic_tables import diagnostics_about
from dlperf_study.report.terminal_answer import in_markdown, in_terminal
from dlperf_study.study.study import SECTIONS
from tests.evidence_factory import Planned, Recipe, configuration, write_lines, write_study
from tests.programs.measured_ways import RECORDER, write_way

APART = (
    "The ranks ended with different parameters: their gradients were not communicated. Do not trust the throughput, "
    "token throughput, speedup and efficiency of toy, 2 devices."
)


def end_apart(paths: StudyPaths, repetitions: range) -> None:
    """Let the ranks of some runs on two devices end with parameters of their own."""
    for log in paths.configurations.glob("*/runs/*/rank-00001.jsonl"):
        if int(log.parent.name) in repetitions:
            lines = [json.loads(line) for line in log.read_text().splitlines()]
            lines[-1]["parameter_checksum"] = "of this rank alone"
            write_lines(log, lines)


@pytest.fixture
def apart(paths: StudyPaths) -> Dataset:
    """A program whose ranks never communicate gradients, as it is found by checksums of the parameters."""
    write_way(paths, RECORDER)
    end_apart(paths, range(1, 4))
    dataset = collect(paths)
    dataset.plan.changed(sections=SECTIONS, title="Apart").write(paths.plan_file)
    return collect(paths)


def speedup_of(dataset: Dataset) -> str:
    """Return the value that tables print."""
    [row] = [row for row in dataset.configurations.itertuples() if row.world_size == 2]
    return f"{row.speedup:.2f}"[:3]


def test_ranks_that_train_apart_are_the_first_sentence_everywhere(apart, paths):
    assert page_findings(apart, "summary").sentences[0] == APART
    assert page_findings(apart, "scaling").sentences[0] == APART
    assert "program" in list(diagnostics_about(apart, "scaling")["subject"])
    assert in_terminal(apart).splitlines()[2] == f"- {APART}"
    assert in_markdown(apart).splitlines()[2] == f"- {APART}"
    results = (write_paper(paths) / "results.tex").read_text().splitlines()
    assert results[1] == APART


def test_every_surface_marks_doubtful_numbers(apart, paths):
    speedup = speedup_of(apart)
    mark = f"(!) {speedup}"
    for text in (in_terminal(apart), in_markdown(apart)):
        [line] = [line for line in text.splitlines() if mark in line]
        assert line.count("(!) ") == 2
        assert "(!) do not trust this number: see above" in text
    assert mark in tables.scaling(apart)._repr_html_()
    paper = write_paper(paths)
    assert mark in (paper / "tables" / "scaling.tex").read_text()
    assert "The ranks ended" not in (paper / "tables" / "scaling.tex").read_text()
    assert "the ranks ended with different parameters" in (paper / "tables" / "scaling.tex").read_text()
    assert re.search(r"/speedup\}\{\(!\)~", (paper / "macros.tex").read_text())


def test_files_have_plain_numbers_and_the_problem_beside_them(apart, paths):
    with (paths.dataset / "configurations.csv").open() as file:
        problems = {row["world_size"]: row["problem"] for row in csv.DictReader(file)}
    assert problems == {
        "1": "",
        "2": "the ranks ended with different parameters: their gradients were not communicated",
    }
    rows = list(csv.DictReader(io.StringIO(tables.scaling(apart).csv())))
    assert rows[1]["Speedup (×)"].startswith(speedup_of(apart))
    assert "runs 1 to 3: the ranks ended with different parameters" in rows[1]["Notes"]


def test_a_speedup_over_a_baseline_whose_ranks_train_apart_is_doubtful_too(apart):
    rows = apart.configurations
    [one, two] = rows["configuration_id"]
    # The configurations change places: the one that trains apart is the baseline.
    communicated = rows.assign(baseline_id=[two, two], speedup=[0.5, float("nan")], efficiency=[1.0, float("nan")])
    serious = serious_diagnostics(communicated, apart.runs, apart.diagnostics)
    assert [(each.configuration_id, each.columns) for each in serious] == [
        (two, ("throughput", "token_throughput")),
        (one, ("speedup", "efficiency")),
    ]
    assert serious[1].message == f"in its baseline {serious[0].message}"
    both = communicated.assign(reference_id=[two, two], relative_throughput=[0.5, float("nan")])
    columns = [each.columns for each in serious_diagnostics(both, apart.runs, apart.diagnostics)]
    assert columns[1:] == [("speedup", "efficiency"), ("relative_throughput",)]


def test_runs_of_a_framework_that_failed_because_their_ranks_train_apart_are_the_first_sentence(paths):
    failed = Recipe(status="failed", reason=f"runs/1: {TRAINED_APART}")
    write_study(paths, [Planned(configuration()), Planned(configuration(devices_per_node=2), failed, runs=2)])
    dataset = collect(paths)
    expected = "2 runs failed because ranks ended with different parameters: ResNet-50, 2 devices."
    for page in ("summary", "scaling"):
        assert page_findings(dataset, page).sentences[0].startswith(expected)
    for text in (in_terminal(dataset), in_markdown(dataset)):
        assert text.splitlines()[2].startswith(f"- {expected}")


def test_a_speedup_above_linear_asks_whether_the_batch_is_right(paths):
    one, two = configuration(), configuration(devices_per_node=2)
    write_study(paths, [Planned(one), Planned(two, Recipe(compute_seconds=0.04, exposed_communication_seconds=0.001))])
    dataset = collect(paths)
    first = page_findings(dataset, "scaling").sentences[0]
    assert re.match(r"The speedup is 1\.\d+ times linear on 2 devices, over 1 device\. Is the batch size right", first)
    assert in_terminal(dataset).splitlines()[2] == f"- {first}"
    [line] = [line for line in in_terminal(dataset).splitlines() if "(!) " in line and "do not" not in line]
    # The throughput may be right.
    assert line.count("(!) ") == 1


def test_without_errors_nothing_is_marked(paths):
    write_way(paths, RECORDER)
    dataset = collect(paths)
    assert dataset.serious_diagnostics == []
    assert dataset.configurations["problem"].isna().all()
    assert "(!)" not in in_terminal(dataset) + in_markdown(dataset) + tables.scaling(dataset)._repr_html_()


def test_an_error_about_a_run_that_does_not_count_is_none(paths):
    write_way(paths, RECORDER)
    end_apart(paths, range(3, 4))
    dataset = collect(paths)
    assert len(dataset.serious_diagnostics) == 1
    failed = dataset.runs["status"].mask(dataset.runs["repetition"] == 3, "failed")
    assert replace(dataset, runs=dataset.runs.assign(status=failed)).serious_diagnostics == []
