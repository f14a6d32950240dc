"""The tables of the communication page: the parts of a step, the exchange alone, factors, timelines, data sources."""

from dataclasses import replace
from pathlib import Path

import pytest

from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.dataset import Dataset, collect
from dlperf_study.paths import StudyPaths
from dlperf_study.report import figures, tables
from dlperf_study.report.formatting import MISSING
from dlperf_study.report.tables.table import Table
from tests.evidence_factory import Planned, Recipe, configuration, write_study
from tests.report.conftest import TOGETHER, write_titled
from tests.report.tables.cells import cell_of

LATENCY_AND_RATE = ("exchange_latency_seconds", "exchange_bandwidth")


def test_one_device_exchanges_nothing(mixed: Dataset) -> None:
    ratio = cell_of(tables.communication(mixed), "1", "Pure communication", "data parallel · fp32")
    assert (ratio.text, ratio.footnote) == (MISSING, "nothing to exchange")


def test_a_rank_that_is_always_the_slowest_makes_no_jitter_in_any_run(mixed: Dataset) -> None:
    jitter = cell_of(tables.communication(mixed), "2", COLUMNS["jitter_seconds"].label, "collective")
    assert (jitter.text, jitter.interval) == ("0", "")
    assert "all its runs have this very value: no interval" in jitter.footnote


@pytest.mark.parametrize("column", ["exposed_seconds", "exchange_seconds", "overlap"])
def test_every_measured_number_of_the_communication_page_has_its_interval(mixed: Dataset, column: str) -> None:
    assert cell_of(tables.communication(mixed), "2", COLUMNS[column].label, "collective").interval


def test_the_exchange_alone_has_latency_and_bandwidth(mixed: Dataset) -> None:
    shown = [cell_of(tables.exchange(mixed), "2", COLUMNS[name].label, "collective") for name in LATENCY_AND_RATE]
    assert all(found.interval for found in shown)
    latency = mixed.configurations.query("framework == 'paddle_collective' and world_size == 2").iloc[0]
    assert latency["exchange_latency_seconds"] == pytest.approx(0.001, rel=0.05)


def test_the_product_of_the_factors_is_the_efficiency(mixed: Dataset) -> None:
    rows = mixed.configurations.dropna(subset=["computation_factor"])
    assert len(rows)
    product = rows["computation_factor"] * rows["balance_factor"] * rows["communication_factor"]
    assert product.tolist() == pytest.approx(rows["efficiency"].tolist(), rel=1e-9)
    assert (rows.loc[rows["world_size"] > 1, "communication_factor"] < 0.9).all()
    assert cell_of(tables.factors(mixed), "2", COLUMNS["communication_factor"].label, "collective").interval
    assert (
        cell_of(tables.factors(mixed), "1", COLUMNS["communication_factor"].label, "data parallel · fp32").text == "1"
    )


def test_a_note_counts_a_sharded_classifiers_collectives_as_computation(paths: StudyPaths) -> None:
    planned = [Planned(configuration(classifier="sharded", devices_per_node=count), TOGETHER) for count in (1, 2)]
    sharded = write_titled(paths, planned)
    note = "sharded classifier has collectives"
    assert all(any(note in line for line in build(sharded).notes) for build in (tables.communication, tables.stability))
    assert all(note in next(build(sharded)).caption for build in (figures.communication, figures.stragglers))


def test_no_note_about_collectives_without_a_sharded_classifier(mixed: Dataset) -> None:
    assert not any("sharded" in line for line in tables.communication(mixed).notes)
    assert "sharded" not in next(figures.communication(mixed)).caption


def traced(paths: StudyPaths, changes: dict[str, object], message: str = "") -> Table:
    """Return the table of the timeline of a study that asked for one of six steps."""
    dataset = write_titled(paths, [Planned(configuration(devices_per_node=count, trace_steps=6)) for count in (1, 2)])
    two = dataset.configurations["world_size"] == 2
    for name, value in changes.items():
        dataset.configurations.loc[two, name] = value
    identity = dataset.configurations.loc[two, "identity"].iloc[0]
    about = {"identity": identity, "subject": "trace", "message": message, "severity": "error"}
    dataset.diagnostics.loc[len(dataset.diagnostics), list(about)] = list(about.values())
    return tables.timeline(
        replace(dataset, diagnostics=dataset.diagnostics if message else dataset.diagnostics.iloc[:-1])
    )


def test_a_timeline_has_a_caption_of_its_own(paths: StudyPaths) -> None:
    table = traced(paths, {"traced_step_seconds": 0.1, "negotiation_seconds": 0.08, "all_reduce_seconds": 0.05})
    assert table.column("Negotiation") == ["80.0"]
    owed = ("devices: 2;", "6 steps after the warm-up of one additional run", "one run has no interval")
    assert [words for words in owed if words not in table.caption] == []
    assert "median" not in table.caption


def test_a_trace_that_failed_has_a_row_with_the_reason(paths: StudyPaths) -> None:
    [row] = traced(paths, {}, "the traced run is no evidence: killed").rows
    assert [cell.footnote for cell in row if cell.text == MISSING] == ["the traced run is no evidence: killed"] * 3


def test_a_trace_that_is_missing_was_requested(paths: StudyPaths) -> None:
    page = traced(paths, {})._repr_html_()
    assert "requested a timeline, but there is none" in page
    assert "No configuration was traced" not in page


def test_what_a_data_source_delivers_alone_is_next_to_what_the_steps_wait_for_it(paths: StudyPaths) -> None:
    waiting, fixed = configuration(devices_per_node=2, data_source="python_queue"), configuration(devices_per_node=2)
    recipe = Recipe(input_seconds=0.02, batch_seconds=0.1)
    dataset = write_titled(paths, [Planned(waiting, recipe), Planned(fixed, Recipe())])
    table = tables.data_sources(dataset)
    [row] = table.rows
    assert [heading.label for heading in table.headings][-4:] == ["Input rate", "Throughput", "Step", "Input wait"]
    assert float(row[-1].text) == pytest.approx(20, rel=0.05)
    parts = [heading.label for heading in tables.communication(dataset).headings]
    assert parts[parts.index("Computation") + 1] == "Input wait"


def test_where_no_step_waits_no_table_has_a_column_for_it(mixed: Dataset) -> None:
    assert "Input wait" not in [heading.label for heading in tables.communication(mixed).headings]
    assert not tables.data_sources(mixed).rows
    assert "No data source of this study makes a step wait" in tables.data_sources(mixed).empty


def test_tables_without_any_value_are_empty(tmp_path: Path) -> None:
    """Of configurations on one device nothing is exchanged, and each is its own baseline."""
    paths = StudyPaths(tmp_path / "example")
    planned = [configuration(batch_per_device=batch) for batch in (4, 8)]
    write_study(paths, [Planned(each, baseline=each) for each in planned])
    dataset = collect(paths)
    assert [tables.exchange(dataset).empty, tables.factors(dataset).empty] == [
        "No configuration exchanges gradients.",
        "Every configuration is its own baseline.",
    ]
    assert not tables.exchange(dataset).rows + tables.factors(dataset).rows
