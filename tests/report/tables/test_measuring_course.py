"""What the pages say about the measuring: a busy machine, the order of the runs, rounds added for precision."""

from dataclasses import replace

import pytest

from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.dataset import Dataset, collect
from dlperf_study.paths import StudyPaths
from dlperf_study.report import tables
from dlperf_study.report.context import repetition
from dlperf_study.report.tables.latex import latex_table
from tests.evidence_factory import Planned, Recipe, change, configuration, write_run
from tests.report.conftest import write_titled


def cells_of(dataset: Dataset, name: str) -> list[str]:
    return tables.measured(dataset).column(COLUMNS[name].label)


@pytest.mark.parametrize("build", [tables.measured, tables.scaling])
def test_a_throughput_of_a_busy_machine_says_so_on_page_and_in_print(paths: StudyPaths, build: object) -> None:
    quiet, busy = configuration(devices_per_node=1), configuration(devices_per_node=2)
    dataset = write_titled(paths, [Planned(quiet), Planned(busy, Recipe(busy_cores=1.5))])
    table = build(dataset)
    owed = "runs 1 to 3: other processes kept 1.50 cores busy during the run"
    assert [footnote for footnote in table.footnotes if "busy" in str(footnote)] == [owed]
    assert owed in latex_table(table)


def test_a_busy_machine_is_among_the_diagnostics_wherever_there_are_rates(paths: StudyPaths) -> None:
    dataset = write_titled(paths, [Planned(configuration(), Recipe(busy_cores=1.5))])
    for question in ("scaling", "comparison", "quality"):
        assert tables.diagnostics(dataset, question).rows


def test_a_run_that_does_not_count_makes_no_throughput_doubtful(paths: StudyPaths) -> None:
    first = configuration()
    write_titled(paths, [Planned(first)])
    write_run(paths, first, 4, Recipe(busy_cores=1.5, outcome="timeout", reason="no end"))
    assert not [footnote for footnote in tables.measured(collect(paths)).footnotes if "busy" in str(footnote)]


def test_runs_of_several_loads_share_a_footnote(paths: StudyPaths) -> None:
    first = configuration()
    write_titled(paths, [Planned(first)])
    load = {"busy_cores_before": 0.0, "busy_cores_during": 0.5, "survivors_ended": []}
    for repetition_number, busy_cores in ((1, 0.5), (3, 1.75)):
        run = paths.configuration(first.identity).run(repetition_number)
        change(run, load={**load, "waited_seconds": 0.0, "busy_cores_during": busy_cores})
    [footnote] = [str(note) for note in tables.measured(collect(paths)).footnotes if "busy" in str(note)]
    assert footnote == "runs 1 and 3: other processes kept 0.50 to 1.75 cores busy during the run"


def test_the_summary_says_what_was_planned_and_what_precision_added(paths: StudyPaths) -> None:
    first, second = configuration(devices_per_node=1), configuration(devices_per_node=2)
    course = {"precision": 0.05, "max_repeats": 8, "time_budget_minutes": 30.0, "order_seed": 7}
    planned = [Planned(first, runs=first.repeats), Planned(second, runs=second.repeats + 1)]
    dataset = write_titled(paths, planned, **course)
    table = tables.about(dataset)
    facts = {row[0].text: row[1].text for row in table.rows}
    assert facts["Order of the runs"] == "rounds, shuffled with order_seed 7"
    assert facts["Precision of the intervals"] == "± 5 %"
    assert facts["Rounds added for it"] == "until there are 8, within 30 min"
    assert f"{2 * first.repeats} runs planned, 1 added for precision." in table.caption
    assert cells_of(dataset, "runs_completed") == [f"{n} of {n}" for n in (first.repeats, second.repeats + 1)]
    assert "in 93 to 95 % of cases" in repetition(dataset)


def test_a_study_without_precision_says_nothing_about_it(paths: StudyPaths) -> None:
    dataset = write_titled(paths, [Planned(configuration(), runs=configuration().repeats)])
    table = tables.about(replace(dataset, plan=replace(dataset.plan, order="blocks")))
    facts = {row[0].text: row[1].text for row in table.rows}
    assert facts["Order of the runs"] == "blocks"
    assert not [name for name in facts if "recision" in name]
    assert "added" not in table.caption
    assert "93" not in repetition(dataset)


def test_parameters_have_units_and_no_code_numbers(paths: StudyPaths) -> None:
    dataset = write_titled(paths, [Planned(configuration(computation_steps=-1, max_warmup_seconds=2.0))])
    facts = {row[0].text: row[1].text for row in tables.about(dataset).rows}
    assert facts["Longest warm-up"] == "2 s"
    assert facts["Computation steps"] == "as many as are measured"
    assert facts["Measured steps"] == str(dataset.configurations["measured_steps"].iloc[0])


def test_bandwidths_of_one_table_have_one_unit(mixed: Dataset) -> None:
    rows = mixed.configurations.assign(bus_bandwidth=9e8, exchange_bandwidth=1.1e9)
    headings = tables.exchange(replace(mixed, configurations=rows)).headings
    assert {h.unit for h in headings if h.label in {COLUMNS["bus_bandwidth"].label, "Fitted bandwidth"}} == {"MB/s"}


def test_a_ratio_of_too_few_common_rounds_says_how_many_it_has(paths: StudyPaths) -> None:
    first, second = configuration(devices_per_node=1), configuration(devices_per_node=2)
    write_titled(paths, [Planned(first), Planned(second)])
    change(paths.configuration(first.identity).run(1), round=None, position=None)
    notes = " ".join(map(str, tables.scaling(collect(paths)).footnotes))
    assert "2 rounds with a run of both it and its baseline: an interval of their ratio needs 3" in notes
    assert "blocks" not in notes
