import json
import subprocess
import sys

import pandas as pd
import pytest

from dlperf_study.core.errors import RecordError
from dlperf_study.dataset import run_table, tables
from dlperf_study.dataset.dataset import Dataset, collect
from dlperf_study.metrics.columns import DATASET_TABLES, Summary, TableName, list_columns, summarised
from dlperf_study.records.run import read_run
from dlperf_study.report.tables.missing import explain_missing
from tests.evidence_factory import Planned, configuration, example_study, write_plan, write_run

ASKED = configuration(devices_per_node=2)


@pytest.fixture
def measured(paths):
    """Return three runs of one configuration, to be damaged."""
    runs = [write_run(paths, ASKED, repetition) for repetition in (1, 2, 3)]
    write_plan(paths, [Planned(ASKED)])
    return runs


def only_error(dataset):
    """Return the repetition and the message of the one error of a study."""
    errors = dataset.diagnostics[dataset.diagnostics["severity"] == "error"]
    [error] = errors.itertuples()
    return error.repetition, error.message


def test_what_is_loaded_is_what_was_collected(paths):
    plan = example_study(paths)
    collected, loaded = collect(paths), Dataset.load(paths)
    assert loaded.plan == plan
    for table in DATASET_TABLES:
        pd.testing.assert_frame_equal(getattr(loaded, table), getattr(collected, table))
    written = pd.read_csv(paths.dataset / "runs.csv")
    assert written["throughput"].tolist() == pytest.approx(collected.runs["throughput"].tolist())
    assert len(pd.read_csv(paths.dataset / "steps.csv")) == len(collected.steps)


def test_many_processes_read_what_one_reads(paths, monkeypatch):
    """Also where one run is the copy of a run of another configuration, and one can't be read."""
    example_study(paths)
    one, two, four = sorted(paths.configurations.glob("*-1n?d-*"))
    original, copy = (
        paths.configuration(one.name).run(1).rank_log(0),
        paths.configuration(four.name).run(2).rank_log(0),
    )
    process = {name: json.loads(original.read_text().splitlines()[0])[name] for name in ("pid", "host", "wall_anchor")}
    first, rest = copy.read_text().split("\n", 1)
    copy.write_text(json.dumps(json.loads(first) | process) + "\n" + rest)
    paths.configuration(two.name).run(3).run_file.write_text("{")
    alone = collect(paths)
    assert len(alone.runs) == 8
    assert set(alone.runs["status"]) == {"completed", "failed"}
    alone_steps = alone.steps
    monkeypatch.setattr(run_table, "WORTH_A_POOL_RUNS", 1)
    monkeypatch.setattr(tables, "ROWS_THAT_WAIT", 3)
    together = collect(paths)
    for table in DATASET_TABLES:
        pd.testing.assert_frame_equal(getattr(alone, table), getattr(together, table))
    pd.testing.assert_frame_equal(alone_steps, together.steps)


@pytest.mark.parametrize("is_ingested", [False, True])
def test_a_dataset_of_an_earlier_or_a_later_version_is_read(paths, is_ingested):
    plan = example_study(paths)
    collected = collect(paths)
    if is_ingested:
        plan.changed(ingested_from="logs").write(paths.plan_file)
    added = {"compiler", "repetitions", "wait_p99_seconds", "input_only_steps", "measuring_code"}
    for table in (TableName.RUNS, TableName.CONFIGURATIONS):
        frame = getattr(collected, table)
        frame = frame.drop(columns=added & {*frame}).assign(of_a_later_version=2)
        frame.to_parquet(paths.dataset / f"{table}.parquet")
    loaded = Dataset.load(paths)
    assert loaded.runs["throughput"].equals(collected.runs["throughput"])
    assert set(loaded.runs["of_a_later_version"]) == {2}
    assert [*loaded.runs][:-1] == [*collected.runs]
    assert [*loaded.runs.dtypes][:-1] == [*collected.runs.dtypes]
    assert loaded.runs["measuring_code"].isna().all()
    assert loaded.runs["compiler"].isna().all() if is_ingested else set(loaded.runs["compiler"]) == {"none"}


def test_a_metric_that_an_earlier_version_did_not_have_is_empty_with_a_reason(paths):
    """Of every metric that is summarised, as if it were declared after the study was measured."""
    example_study(paths, devices=(2,))
    collected, added = collect(paths), list(summarised(*Summary))
    for table in (TableName.RUNS, TableName.CONFIGURATIONS):
        getattr(collected, table).drop(columns=added).to_parquet(paths.dataset / f"{table}.parquet")
    loaded = Dataset.load(paths)
    assert loaded.configurations[added].isna().all(axis=None)
    row = next(loaded.configurations.itertuples())
    assert all(explain_missing(loaded, row, name) for name in added)


def test_tables_have_the_columns_and_types_of_the_registry(paths):
    example_study(paths)
    dataset = collect(paths)
    for table in DATASET_TABLES:
        types = {name: str(dtype) for name, dtype in getattr(dataset, table).dtypes.items()}
        assert types == {column.name: str(column.dtype_in(table)) for column in list_columns(table)}, table


def test_an_empty_study_has_empty_tables_of_the_same_columns(paths):
    write_plan(paths, [Planned(ASKED)])
    dataset = collect(paths)
    for table in DATASET_TABLES:
        frame = getattr(dataset, table)
        assert list(frame.columns) == [column.name for column in list_columns(table)]
        assert len(frame) == {TableName.CONFIGURATIONS: 1, TableName.DIAGNOSTICS: 1}.get(table, 0)
    assert len(dataset.select_steps([])) == 0


def test_steps_of_every_window_and_rank_are_kept_in_order_and_sum_up_to_the_window(paths, measured):
    dataset = collect(paths)
    steps = dataset.steps
    of_rank = steps.query("repetition == 2 and rank == 1 and window == 'training'")
    assert of_rank["step"].tolist() == list(range(ASKED.measured_steps))
    assert steps[steps["window"] == "communication"]["loss"].isna().all()
    runs = dataset.runs.set_index("repetition")
    assert of_rank["seconds"].sum() <= runs.loc[2, "step_seconds"] * ASKED.measured_steps * (1 + 1e-9)
    counted = runs.loc[1, ["steps_warmed_up", "warmup_end", "steps_measured"]].tolist()
    assert counted == [ASKED.warmup_steps, "steady", ASKED.measured_steps]
    kept = steps.groupby(["repetition", "rank", "window"], observed=True).size()
    for log in read_run(measured[0]).ranks:
        for name, window in log.windows.items():
            assert kept[(1, log.rank, name)] == window.steps


def test_the_steps_of_some_configurations_are_those_of_the_whole_table(paths):
    example_study(paths)
    dataset = collect(paths)
    chosen = list(dataset.configurations["configuration_id"].iloc[1:3])
    columns = ["configuration_id", "seconds"]
    expected = dataset.steps.loc[dataset.steps["configuration_id"].isin(chosen), columns].astype(
        {"configuration_id": str}
    )
    assert 0 < len(expected) < len(dataset.steps)
    some = dataset.select_steps(chosen)[columns].astype({"configuration_id": str})
    assert some.to_numpy().tolist() == expected.to_numpy().tolist()
    assert len(dataset.select_steps([])) == len(dataset.select_steps(["of-no-study"])) == 0


def test_a_truncated_rank_log_is_an_error_and_its_run_is_not_counted(paths, measured):
    log = measured[1].rank_log(1)
    log.write_text("\n".join(log.read_text().splitlines()[:-1]))
    dataset = collect(paths)
    assert dataset.runs["status"].tolist() == ["completed", "failed", "completed"]
    assert dataset.configurations["runs_completed"].tolist() == [2]
    repetition, message = only_error(dataset)
    assert repetition == 2
    assert "rank-00001.jsonl: truncated" in message
    assert set(dataset.steps["repetition"]) == {1, 3}


def test_an_unreadable_run_file_is_an_error_and_no_row(paths, measured):
    measured[0].run_file.write_text('{"format": 1')
    dataset = collect(paths)
    assert dataset.runs["repetition"].tolist() == [2, 3]
    repetition, message = only_error(dataset)
    assert repetition == 1
    assert "is not JSON" in message


def test_a_copied_repetition_is_not_counted(paths, measured, snapshot):
    for rank in range(ASKED.world_size):
        copied = (
            measured[0].rank_log(rank).read_text().replace(f"{ASKED.configuration_id}/1", f"{ASKED.configuration_id}/3")
        )
        measured[2].rank_log(rank).write_text(copied)
    dataset = collect(paths)
    assert dataset.configurations["runs_completed"].tolist() == [2]
    assert only_error(dataset) == (3, snapshot)


def test_a_run_without_run_file_was_interrupted(paths, measured, snapshot):
    measured[2].run_file.unlink()
    assert only_error(collect(paths)) == (3, snapshot)


def test_a_configuration_outside_the_plan_is_reported_and_not_counted(paths, measured):
    other = configuration(seed=5)
    write_run(paths, other, 1)
    dataset = collect(paths)
    assert set(dataset.runs["configuration_id"]) == {ASKED.configuration_id}
    assert dataset.diagnostics["configuration_id"].tolist() == [other.configuration_id]


def test_without_plan_or_dataset_the_message_says_what_to_do(paths):
    with pytest.raises(RecordError, match="plan"):
        collect(paths)
    write_plan(paths, [Planned(ASKED)])
    with pytest.raises(RecordError, match="report NAME"):
        Dataset.load(paths)


def test_a_dataset_of_an_older_version_is_not_read_but_written_again(paths, refused):
    example_study(paths)
    collect(paths)
    for suffix in ("parquet", "csv"):
        (paths.dataset / f"diagnostics.{suffix}").rename(paths.dataset / f"complaints.{suffix}")
    with refused(RecordError):
        Dataset.load(paths)
    collect(paths)
    names = {file.stem for file in paths.dataset.iterdir()}
    assert names == set(DATASET_TABLES)


def test_reading_needs_no_framework_library():
    code = "import sys, dlperf_study.dataset.dataset as d; print({'paddle', 'torch', 'horovod'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
