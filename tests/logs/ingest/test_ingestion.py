"""From a folder of logs to a dataset: its numbers, what is left out of them, and what is diagnosed."""

import re
import shutil

import numpy as np
import pytest

from dlperf_study.core.errors import MetadataError, RecordError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.dataset import collect, up_to_date
from dlperf_study.dataset.ingestion import run_reader
from dlperf_study.dataset.ingestion.ingestion import refuse_others
from dlperf_study.logs.identification import identify_logs
from tests.evidence_factory import example_study
from tests.logs.ingest.conftest import SAMPLES, THROUGHPUT, declare, refusals, slow_down, speedometer

LOG = "1n1g/r50_b128_fp32_1.log"


def diagnosed(dataset, *subjects):
    """Return severity and message of the diagnostics about these subjects."""
    rows = dataset.diagnostics[dataset.diagnostics["subject"].isin(subjects)]
    return [f"{row.severity}: {row.message}" for row in rows.itertuples()]


@pytest.mark.usefixtures("small_archive")
def test_logs_become_the_tables_of_a_study(ingested):
    dataset = ingested()
    assert dataset.configurations["runs_completed"].tolist() == [3, 3, 3]
    assert dataset.configurations["throughput"].to_numpy() == pytest.approx(
        THROUGHPUT * np.array([1, 8, 80]), rel=0.005
    )
    assert dataset.configurations["speedup"].to_numpy() == pytest.approx([1, 8, 80], rel=0.005)
    assert dataset.configurations[["image_size", "optimizer"]].isna().all(axis=None)
    assert dataset.configurations["parameter_servers"].tolist() == [0, 0, 0]
    assert "error" not in set(dataset.diagnostics["severity"])
    assert dataset.plan.ingested_from
    # The start-up is left out, and DLPerf's window is next to the steady one.
    run = dataset.runs.iloc[0]
    assert (run.printed_lines, run.steady_lines, run.settled_at_step, run.steadiness) == (121, 116, 5, "steady")
    steps = dataset.steps[
        (dataset.steps["configuration_id"] == run.configuration_id) & (dataset.steps["repetition"] == 1)
    ]
    assert steps["window"].value_counts().to_dict() == {"training": 116, "warmup": 5, "left_out": 0}
    counted = steps[steps["window"] == "training"]
    assert run.throughput == pytest.approx(128 * len(counted) / counted["seconds"].sum())
    assert run.final_loss == pytest.approx(5.8)
    assert run.fixed_window == "20 to 119"
    assert run.fixed_window_mean_step_throughput == pytest.approx(THROUGHPUT, rel=0.005)
    assert run.fixed_window_mean_step_throughput >= run.fixed_window_throughput


@pytest.mark.usefixtures("small_archive")
def test_a_missing_baseline_is_an_error_and_no_speedup(folder, ingested):
    shutil.rmtree(folder / "1n1g")
    dataset = ingested()
    assert dataset.configurations["speedup"].isna().all()
    assert (dataset.diagnostics["severity"] == "error").sum() == 2
    assert dataset.configurations["unsupported_reason"].notna().tolist() == [False, False, True]


def test_a_throughput_without_a_unit_is_used_only_if_tokens_per_sample_is_declared(folder, ingested, snapshot):
    stats = '"key": "tracked_stats", "value": {{"throughput": 30.5}}'
    line = f':::MLLOG {{{{"time_ms": 1, {stats}, "metadata": {{{{"step": {{}}}}}}}}}}\n'
    (folder / "run_1.log").write_text("".join(line.format(step) for step in range(100, 2100, 100)))
    declare(folder, devices_per_node=8)
    assert refusals(ingested()) == snapshot
    declare(folder, devices_per_node=8, tokens_per_sample=1)
    assert ingested().runs["throughput"].tolist() == pytest.approx([30.5])


@pytest.mark.parametrize(("nodes", "logs"), [(1, ["run_1.log"]), (2, ["run_1/node0.log", "run_1/node1.log"])])
def test_a_process_that_drives_several_devices_prints_for_all_of_them(folder, ingested, nodes, logs):
    for node, log in enumerate(logs):
        (folder / log).parent.mkdir(exist_ok=True)
        (folder / log).write_text(speedometer(2800 + k % 7 + node for k in range(20)))
    declare(folder, nodes=nodes, devices_per_node=8, batch_per_device=64, devices_per_process=8)
    run = ingested().runs.iloc[0]
    assert run.throughput == pytest.approx(2803 * nodes, rel=0.001)
    assert (run.ranks_expected, run.ranks_seen, run.global_batch) == (nodes, nodes, 512 * nodes)
    assert run.merge_rule.endswith("drives 8 devices")


def test_a_log_of_two_levels_shows_them_instead_of_one_throughput(ingested, write_log, snapshot):
    log = write_log(LOG)
    lines = log.read_text().splitlines()
    log.write_text("\n".join([*lines[:60], *(slow_down(line, 2.0) for line in lines[60:])]) + "\n")
    dataset = ingested()
    run = dataset.runs.iloc[0]
    assert refusals(dataset) == snapshot
    assert re.findall(r"[\d.]+", run.throughput_levels) == ["349.902", "5", "59", "174.893", "60", "120"]
    assert run.behaviour == "slow-down"


def test_logs_that_are_missing_or_too_many_are_diagnosed(folder, ingested, write_log, snapshot):
    for repetition in (1, 2, 3):
        for node in (0, 1)[: 1 if repetition == 3 else 2]:
            write_log(f"2n1g/node{node}/r50_b128_fp32_{repetition}.log", 1, seed=10 * repetition + node)
    write_log("2n1g/strange.log")
    write_log(LOG, head=("use_dali : 1",))
    write_log("1n1g/r50_b128_fp32_2.log", head=("use_dali : 0",))
    assert diagnosed(ingested(), "logs", LOG, "1n1g/r50_b128_fp32_2.log") == snapshot


@pytest.mark.parametrize("seconds", ["1e308", "1e-308"])
def test_a_time_that_nothing_takes_is_left_out(ingested, write_log, seconds):
    log = write_log("1n8g/r50_b128_fp32_1.log", 8)
    log.write_text(re.sub(r"(batch 60\].*elapse )\S+", rf"\g<1>{seconds}", log.read_text()))
    assert ingested().runs["throughput"].iloc[0] == pytest.approx(8 * THROUGHPUT, rel=0.005)


def test_validation_stalls_of_a_complete_log_are_detected(folder, ingested, snapshot):
    (folder / "1n8g").mkdir()
    shutil.copy(SAMPLES / "plsc_2_2_complete_real.log.gz", folder / "1n8g/r50_b128_fp16_1.log.gz")
    dataset = ingested()
    run = dataset.runs.iloc[0]
    assert refusals(dataset) == {}
    assert "every 2000 steps" in run.steady_window
    # The times of its lines and its printed throughputs agree on what validation and new epochs cost: 14 %.
    counted = dataset.steps[dataset.steps["window"] != "warmup"]
    printed_with_stalls = len(counted) / counted["seconds"].sum() * run.global_batch
    assert run.wall_throughput == pytest.approx(printed_with_stalls, rel=0.002)
    assert run.wall_throughput == pytest.approx(0.858 * run.throughput, rel=0.002)
    assert run.fixed_window == "50 to 149"
    assert run.fixed_window_mean_step_throughput < 0.6 * run.throughput
    # The fixed window has one line of this log only.
    assert diagnosed(dataset, "throughput", "fixed_window_mean_step_throughput") == snapshot


@pytest.mark.usefixtures("small_archive")
def test_logs_that_the_identity_names_must_exist(folder, ingested, refused):
    identify_logs(folder, confirm=True)
    (folder / "1n8g/r50_b128_fp32_2.log").unlink()
    with refused(MetadataError):
        ingested()


def test_a_single_declared_configuration_has_no_baseline_that_nobody_declared(folder, ingested, write_log):
    write_log("train.log", 8)
    declare(folder, devices_per_node=8)
    dataset = ingested()
    assert dataset.plan.about.endswith("baseline: none declared.")
    assert dataset.configurations["devices_per_node"].tolist() == [8]
    assert "error" not in set(dataset.diagnostics["severity"])


@pytest.mark.usefixtures("small_archive")
def test_a_declared_baseline_and_stated_parameters_are_kept(folder, ingested):
    file = identify_logs(folder).file
    text = file.read_text().replace("devices_per_node: 1}", "devices_per_node: 8}")
    file.write_text(text.replace("precision: fp32", "precision: fp32\n  image_size: 224\n  interconnect: NVLink"))
    dataset = ingested()
    assert dataset.configurations["is_baseline"].tolist() == [False, True, False]
    assert dataset.configurations["image_size"].tolist() == [224, 224, 224]
    assert dataset.configurations["efficiency"].to_numpy() == pytest.approx([1, 1, 1], rel=0.01)
    assert set(dataset.runs["interconnect"]) == {"NVLink"}


@pytest.mark.usefixtures("small_archive")
def test_many_processes_read_what_one_reads(ingested, monkeypatch):
    alone = ingested()
    monkeypatch.setattr(run_reader, "WORTH_A_POOL_BYTES", 0)
    together = ingested()
    for table in ("runs", "steps", "diagnostics"):
        assert getattr(alone, table).equals(getattr(together, table))


@pytest.mark.usefixtures("small_archive")
def test_studies_of_one_name_are_never_confused(ingested, folder, paths, refused):
    dataset = ingested()
    assert len(up_to_date(paths).runs) == len(dataset.runs)
    example_study(StudyPaths.of("measured"))
    refuse_others(paths, folder)
    with pytest.raises(RecordError):
        collect(paths)
    for study, other_folder in ((StudyPaths.of("measured"), folder), (paths, folder.parent)):
        with refused(MetadataError):
            refuse_others(study, other_folder)


@pytest.mark.parametrize("startup_seconds", [0, 100])
def test_a_mean_since_the_start_is_a_steady_throughput_only_without_a_startup(
    folder, ingested, snapshot, startup_seconds
):
    """A hundred samples/s, 128 a step on 1 device, after the start-up."""
    declare(folder)
    line = "[2021-03-02 10:00:{:02},001] [INFO] 0/{}, RunningAvgSamplesPerSec={}\n"
    steps = range(20, 201, 20)
    text = "".join(line.format(step % 60, step, 100 * step / (startup_seconds + step)) for step in steps)
    (folder / "run_1.log").write_text(text)
    warnings = diagnosed(ingested(), "logs")
    assert len(warnings) == (startup_seconds > 0)
    assert warnings == snapshot


@pytest.mark.parametrize(("precision", "count"), [("fp31", 1), ("fp32", 0), ("FP16", 0), ("int8", 0)])
def test_a_precision_that_is_nearly_a_known_one_has_a_warning(folder, ingested, precision, count):
    declare(folder / "case", precision=precision)
    (folder / "case/run_1.log").write_text(speedometer(350 + step % 3 for step in range(100)))
    warnings = diagnosed(ingested(), "precision")
    assert len(warnings) == count
    assert all("did you mean fp32?" in warning for warning in warnings)
