"""Folders as trackers of experiments leave them: a run is one log, and nothing that a tracker made up is a fact."""

import math
import shutil
import sqlite3
import zipfile
from contextlib import closing

import pytest

from dlperf_study.core.errors import LogError, MetadataError
from dlperf_study.logs.identification import identify_logs
from dlperf_study.logs.tracker_files import names_by_people
from tests.logs.ingest.conftest import SAMPLES, declare, refusals, write_identity

#: MLflow's names of an experiment and of runs; the last ends in what could be the number of a repetition.
EXPERIMENT, FIRST, SECOND = "387317719080420083", "6e9fbf7d8d964eae8de3201ab497532f", "6e9fbf7d8d964eae8de3201ab4975327"
FAILED = "0" * 32


def write_mlflow_run(folder, status=3):
    """Write a run of 40 steps of about 350 samples/s, as MLflow 3 stores it."""
    (folder / "metrics" / "throughput").mkdir(parents=True)
    for other in ("params/batch", "tags/mlflow.runName", "artifacts/model.log"):
        (folder / other).parent.mkdir()
        (folder / other).write_text("masked-lark-877")
    (folder / "meta.yaml").write_text(f"lifecycle_stage: active\nrun_id: {folder.name}\nstatus: {status}\n")
    lines = [f"{1795407925000 + 365 * step} {350 + math.sin(step)} {step}\n" for step in range(40)]
    (folder / "metrics" / "throughput" / "samples_per_sec").write_text("".join(lines))
    (folder / "metrics" / "loss").write_text(lines[0])


@pytest.fixture
def mlruns(folder):
    experiment = folder / "mlruns" / EXPERIMENT
    write_mlflow_run(experiment / FIRST)
    (folder / "mlruns" / "0").mkdir()
    for name in (EXPERIMENT, "0"):
        (folder / "mlruns" / name / "meta.yaml").write_text(f"experiment_id: '{name}'\nname: resnet50\n")
    return experiment


def test_a_description_of_a_run_alone_is_no_run(folder):
    (folder / "meta.yaml").write_text("lifecycle_stage: active\nrun_id: 1\nstatus: 3\n")
    with pytest.raises(MetadataError):
        identify_logs(folder / "meta.yaml")


def test_a_run_of_mlflow_is_one_log(folder, mlruns, ingested):
    declare(folder)
    dataset = ingested()
    [run] = dataset.runs.itertuples()
    assert (run.repetition, run.status) == (1, "completed")
    assert run.throughput == pytest.approx(350, rel=0.002)
    assert not dataset.diagnostics["message"].str.contains("of no run").any()


@pytest.fixture
def database(folder):
    """Write a database with two runs, in the tables and columns of MLflow 3 that are read, and what lies next to it."""
    path = folder / "mlflow.db"
    with closing(sqlite3.connect(path)) as written, written:
        written.execute("CREATE TABLE runs (run_uuid TEXT, status TEXT, start_time INT, lifecycle_stage TEXT)")
        written.execute(
            "CREATE TABLE metrics (key TEXT, value FLOAT, timestamp INT, run_uuid TEXT, step INT, is_nan BOOLEAN)"
        )
        for index, name in enumerate((FIRST, SECOND)):
            written.execute("INSERT INTO runs VALUES (?, 'FINISHED', ?, 'active')", (name, index))
            for step in range(40):
                values = (350 + index + math.sin(step), 1795407925000 + 365 * step, name, step)
                written.execute("INSERT INTO metrics VALUES ('throughput/samples_per_sec', ?, ?, ?, ?, 0)", values)
            written.execute("INSERT INTO metrics VALUES ('loss', 0, 1795407925000, ?, 0, 1)", (name,))
    artifact = folder / "mlruns" / EXPERIMENT / FIRST / "artifacts" / "model.log"
    artifact.parent.mkdir(parents=True)
    artifact.write_text("masked-lark-877")
    return path


RUNS_OF_DATABASE = [{"repetition": number, "logs": [f"mlflow.db/{name}"]} for number, name in ((1, FIRST), (2, SECOND))]


def test_the_runs_in_the_database_of_mlflow_are_logs(folder, database, ingested):
    # The names that MLflow makes up do not say which run is which repetition.
    write_identity(folder / "metadata.yaml", RUNS_OF_DATABASE)
    dataset = ingested()
    assert dataset.runs["status"].tolist() == ["completed"] * 2
    assert dataset.runs["throughput"].tolist() == pytest.approx([350, 351], rel=0.002)
    assert not dataset.diagnostics["message"].str.contains("of no run").any()


def test_one_run_in_a_database_in_an_archive_needs_no_name(folder, database, ingested, tmp_path):
    with closing(sqlite3.connect(database)) as changed, changed:
        changed.execute("DELETE FROM runs WHERE run_uuid = ?", (SECOND,))
    declare(folder)
    archive = tmp_path / "runs.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in (database, folder / "configuration.json"):
            packed.write(path, path.name)
    assert ingested(identify_logs(archive, confirm=True)).runs["status"].tolist() == ["completed"]


def test_a_run_in_a_database_that_did_not_finish_is_refused(folder, database, ingested):
    with closing(sqlite3.connect(database)) as changed, changed:
        changed.execute("UPDATE runs SET status = 'RUNNING' WHERE run_uuid = ?", (SECOND,))
    write_identity(folder / "metadata.yaml", RUNS_OF_DATABASE)
    [reason] = refusals(ingested()).values()
    assert reason.endswith("the run is RUNNING and active in MLflow; only FINISHED and active runs are read")


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0 and no more", b"step 1\n"])
def test_a_database_that_cannot_be_read_is_an_error(folder, content):
    (folder / "mlflow.db").write_bytes(content)
    declare(folder)
    with pytest.raises(LogError, match=r"mlflow\.db: can't be read as a database of MLflow"):
        identify_logs(folder)


def test_a_run_of_mlflow_in_an_archive_is_the_same(folder, mlruns, tmp_path):
    declare(folder)
    archive = tmp_path / "store.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in sorted(folder.rglob("*")):
            packed.write(path, path.relative_to(folder))
    [metadata] = identify_logs(archive, confirm=True).study.configurations
    assert metadata.logs == [f"mlruns/{EXPERIMENT}/{FIRST}/metrics"]


def test_a_run_of_mlflow_that_failed_or_has_no_metrics_is_refused(folder, mlruns, ingested, snapshot):
    write_mlflow_run(mlruns / SECOND)
    shutil.rmtree(mlruns / SECOND / "metrics")
    write_mlflow_run(mlruns / FAILED, status=4)
    for devices, run in enumerate((FIRST, SECOND, FAILED), 1):
        declare(mlruns / run, devices_per_node=devices)
    dataset = ingested()
    assert set(dataset.runs["repetition"]) == {1}
    assert set(refusals(dataset)) == {"1n2g 1", "1n3g 1"}
    assert refusals(dataset) == snapshot


def test_what_mlflow_keeps_next_to_runs_is_no_log(folder, mlruns, ingested):
    declare(folder)
    model, dataset = f"models/m-{FIRST}", f"datasets/{SECOND}"
    for other in (f"{model}/artifacts/MLmodel", f"{model}/meta.yaml", f"{model}/metrics/loss", f"{dataset}/meta.yaml"):
        (mlruns / other).parent.mkdir(parents=True, exist_ok=True)
        (mlruns / other).write_text("name: model\n")
    (mlruns / "tags").mkdir()
    (mlruns / "tags" / "mlflow.note.content").write_text("a note")
    assert list(ingested().runs["status"]) == ["completed"]


def test_two_runs_of_one_configuration_need_a_person(folder, mlruns, ingested):
    write_mlflow_run(mlruns / SECOND)
    declare(folder, devices_per_node=2)
    with pytest.raises(MetadataError, match=f"appears 2 times: .*{FIRST}.*, .*{SECOND}"):
        ingested()


def test_a_run_of_weights_and_biases_is_one_log(folder, ingested):
    name = "offline-run-20261123_042524-z3ouoy25"
    run_folder = folder / "wandb" / name
    for other in ("files/requirements.txt", "logs/debug-core.log", "../debug.log", "../debug-internal.log"):
        (run_folder / other).parent.mkdir(parents=True, exist_ok=True)
        (run_folder / other).write_text("2026-11-23 04:25:24 INFO main\n")
    shutil.copy(SAMPLES / "today" / "wandb_constructed.wandb", run_folder / "run-z3ouoy25.wandb")
    (folder / "wandb" / "latest-run").symlink_to(name)
    declare(folder)
    [run] = ingested().runs.itertuples()
    assert (run.repetition, run.status) == (1, "completed")
    assert run.throughput == pytest.approx(350, rel=0.002)
    # An archive has the link as a folder.
    (folder / "wandb" / "latest-run").unlink()
    shutil.copytree(run_folder, folder / "wandb" / "latest-run")
    [metadata] = identify_logs(folder, confirm=True).study.checked().configurations
    assert metadata.logs == [f"wandb/{name}/run-z3ouoy25.wandb"]


@pytest.mark.parametrize(
    ("path", "names"),
    [
        (f"run_2/mlruns/{EXPERIMENT}/{FIRST}/metrics", "run_2/mlruns"),
        ("run_2/wandb/run-20261123_042524-z3ouoy25/run-z3ouoy25.wandb", "run_2/wandb"),
        ("run_2/events.out.tfevents.1795407924.host.10034.0", "run_2"),
        # A person copied the run itself into a folder.
        (f"run_2/{FIRST}/metrics", "run_2"),
        (f"{FIRST}/metrics", ""),
        ("run_2/run-z3ouoy25.wandb", "run_2"),
        ("run_2/latest-run/run-z3ouoy25.wandb", "run_2"),
        ("run-z3ouoy25.wandb", ""),
        ("metrics", "metrics"),
        ("run_2/metrics", "run_2/metrics"),
    ],
)
def test_names_by_people_are_kept(path, names):
    assert "/".join(names_by_people(path.split("/"))) == names


def test_a_database_that_computes_a_column_is_refused(folder, database, ingested):
    """12 KB make gigabytes: a generated column has a text of any length in each row."""
    with closing(sqlite3.connect(database)) as changed, changed:
        changed.execute("ALTER TABLE metrics ADD COLUMN more TEXT AS (hex(zeroblob(100000000))) VIRTUAL")
    write_identity(folder / "metadata.yaml", RUNS_OF_DATABASE)
    with pytest.raises(LogError, match="must be tables of stored columns"):
        ingested()
