import pandas as pd
import pytest

from dlperf_study.audit.result_frames import long_frame, read_results_frame
from dlperf_study.core.errors import TableError
from tests.audit.tables import ratio, results, runs, throughput


def test_a_dash_is_no_cell_and_a_key_is_there_once():
    table = pd.DataFrame([throughput("100"), throughput("200", 2) | {"value": float("nan"), "printed": "-"}])
    assert [cell.key for cell in read_results_frame(table).cells] == ["table/throughput/1"]
    with pytest.raises(TableError, match="column cell has"):
        results([throughput("100"), throughput("100")])


@pytest.mark.parametrize("name", ["metric", "value"])
def test_a_missing_column_is_named(name):
    with pytest.raises(TableError, match=f"column {name} is missing"):
        read_results_frame(pd.DataFrame([throughput("100")]).drop(columns=name))


def test_a_cell_reads_as_it_was_printed_and_has_the_devices_of_its_nodes():
    [cell] = results([ratio("efficiency", "78.64%", 20)]).cells
    assert (cell.text, cell.value) == ("78.64%", pytest.approx(0.7864))
    assert (cell.baseline, cell.world_size) == ("table/throughput/1", 20)
    [cell] = results([throughput("100") | {"world_size": None, "nodes": 4, "devices_per_node": 8}]).cells
    assert cell.world_size == 32


def test_without_a_word_for_it_a_series_is_what_only_devices_tell_apart():
    rows = []
    for batch in (32, 64):
        for devices in (1, 2, 4):
            row = throughput("100", devices, cell=f"{batch}/{devices}", nodes=devices, batch_per_device=batch)
            rows.append(row | {"series": None})
    lengths = [len(curve) for curve in results(rows).curves]
    assert lengths == [3, 3]


def test_runs_are_no_summaries():
    table = results([throughput("397.78"), *runs(["397.44", "398.05"])])
    assert [cell.text for cell in table.select("throughput")] == ["397.78"]
    assert [run.text for run in table.list_runs(table.cells[0])] == ["397.44", "398.05"]


WIDE = pd.DataFrame(
    [
        {"configuration_id": "one", "world_size": 1, "throughput": 10.0, "speedup": 1.0, "baseline_id": "one"},
        {"configuration_id": "two", "world_size": 2, "throughput": 19.0, "speedup": 1.9, "baseline_id": "one"},
    ]
).assign(throughput_low=[9.0, 18.0], throughput_high=[11.0, 20.0], batch_per_device=8)


def test_a_wide_frame_has_a_cell_for_every_metric():
    table = read_results_frame(long_frame(WIDE, "study"))
    assert list(table.by_key) == [
        f"study/{name}/{metric}" for name in ("one", "two") for metric in ("throughput", "speedup")
    ]
    speedup = table.by_key["study/two/speedup"]
    assert table.find_baseline(speedup) is table.by_key["study/one/throughput"]
    assert table.at_same_point(speedup, "throughput") is table.by_key["study/two/throughput"]


def test_a_wide_frame_brings_its_intervals():
    table = read_results_frame(long_frame(WIDE, "study"))
    known = table.throughput(table.by_key["study/two/throughput"])
    interval = known.logarithm.factor_interval()
    assert interval.high / interval.low == pytest.approx(20.0 / 18.0)
