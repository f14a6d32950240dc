"""The tables of the communication page: the parts of a step, communication alone, data loaders."""

from dataclasses import replace

import pytest

from dlperf_study.dataset.cells import is_missing
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.report import figures, tables
from dlperf_study.report.formatting import MISSING
from dlperf_study.report.tables.missing import explain_missing
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import ALONE, TOGETHER, study
from tests.report.tables.cells import cell_of, labels

LATENCY_AND_THROUGHPUT = ("communication_latency_seconds", "communication_bandwidth")


def test_what_a_data_source_delivers_alone_is_next_to_what_the_steps_wait_for_it():
    waiting, fixed = configuration(devices_per_node=2, data_loader="python_queue"), configuration(devices_per_node=2)
    recipe = Recipe(input_seconds=0.02, batch_seconds=0.1)
    dataset = study(Planned(waiting, recipe), Planned(fixed, Recipe()))
    table = tables.data_loaders(dataset)
    [row] = table.rows
    assert labels(table)[-5:] == [
        "Input throughput",
        "Throughput",
        "Step in parts",
        "Data-loading stall",
        "Input share",
    ]
    assert float(row[-2].text) == pytest.approx(20, rel=0.05)
    parts = labels(tables.communication(dataset))
    assert parts[parts.index("Computation") + 1] == "Data-loading stall"


def test_what_is_not_exchanged_says_so(mixed):
    communication = cell_of(tables.communication_alone(mixed), "1", "Communication-only time", "data parallel")
    assert (communication.text, communication.footnote) == (MISSING, "nothing to communicate")


@pytest.mark.parametrize(("noise", "is_shown"), [(0.01, False), (0.1, True)])
def test_waiting_for_jitter_below_two_milliseconds_is_no_number(noise, is_shown):
    one, two = (configuration(devices_per_node=count) for count in (1, 2))
    dataset = study(Planned(one, ALONE), Planned(two, replace(TOGETHER, noise=noise)))
    in_runs = dataset.runs["jitter_seconds"].mean()
    assert (in_runs >= 0.002, in_runs > 0) == (is_shown, True)
    row = dataset.configuration_rows[two.configuration_id]
    assert is_missing(row.jitter_seconds) is not is_shown
    assert is_missing(row.jitter_seconds_low) is not is_shown
    assert ("Synchronisation jitter" in labels(tables.communication(dataset))) is is_shown
    if not is_shown:
        assert explain_missing(dataset, row, "jitter_seconds") == "below 2 ms, so it is not reported"


def test_only_a_note_on_a_sharded_classifier_counts_its_collectives_as_computation(mixed):
    planned = [Planned(configuration(classifier="sharded", devices_per_node=count), TOGETHER) for count in (1, 2)]
    for dataset, is_sharded in ((study(*planned), True), (mixed, False)):
        texts = [*(" ".join(build(dataset).notes) for build in (tables.communication, tables.stability))]
        texts += [next(build(dataset)).caption for build in (figures.communication, figures.stragglers)]
        assert ["sharded classifier" in text for text in texts] == [is_sharded] * 4


def test_tables_without_any_value_are_empty(snapshot):
    """Nothing is communicated on one device."""
    planned = [configuration(batch_per_device=batch) for batch in (4, 8)]
    dataset = study(*(Planned(each, baseline=each) for each in planned))
    empty = [tables.communication_alone(dataset), tables.data_loaders(dataset)]
    assert [table.is_empty for table in empty] == [True] * 2
    assert [table.empty for table in empty] == snapshot


def test_a_percentile_that_no_configuration_has_is_no_column_but_a_note(mixed):
    p99 = COLUMNS["step_p99_seconds"].label
    shown, left_out = (
        tables.step_times(replace(mixed, configurations=mixed.configurations.assign(step_p99_seconds=seconds)))
        for seconds in (0.1, float("nan"))
    )
    assert p99 in labels(shown)
    assert labels(left_out) == [label for label in labels(shown) if label != p99]
    assert [note for note in left_out.notes if note.startswith(f"Without {p99}: ")]


def test_the_sum_of_trainers_is_shown_where_it_is_another_number_than_the_throughput(mixed):
    throughputs, label = mixed.configurations["throughput"], COLUMNS["sum_of_rank_throughputs"].label
    for factor, is_shown in ((1.0, False), (1.5, True)):
        rows = mixed.configurations.assign(sum_of_rank_throughputs=throughputs * factor)
        shown = labels(tables.communication_alone(replace(mixed, configurations=rows)))
        assert (label in shown, COLUMNS["throughput"].label in shown) == (is_shown, is_shown)
