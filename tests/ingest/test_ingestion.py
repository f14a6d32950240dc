"""From a folder of logs to a dataset: what is counted, what is refused, and why."""

import gzip
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from dlperf_study.dataset.dataset import collect, up_to_date
from dlperf_study.errors import EvidenceError, IdentityError
from dlperf_study.ingest import run_reader
from dlperf_study.ingest.identification import identify_logs
from dlperf_study.ingest.ingestion import refuse_others
from dlperf_study.paths import StudyPaths
from tests.evidence_factory import example_study
from tests.ingest.conftest import RATE, SAMPLES, Ingest, WriteLog, declare, errors_of, reason


@pytest.mark.usefixtures("small_archive")
def test_logs_become_the_tables_of_a_study(ingested: Ingest) -> None:
    dataset = ingested()
    assert dataset.configurations["runs_completed"].tolist() == [3, 3, 3]
    assert dataset.configurations["throughput"].to_numpy() == pytest.approx(RATE * np.array([1, 8, 80]), rel=0.005)
    assert dataset.configurations["speedup"].to_numpy() == pytest.approx([1, 8, 80], rel=0.005)
    assert dataset.configurations["image_size"].isna().all()
    assert dataset.configurations["optimizer"].isna().all()
    assert dataset.configurations["servers"].tolist() == [0, 0, 0]
    assert errors_of(dataset) == []
    assert dataset.plan.ingested_from


@pytest.mark.usefixtures("small_archive")
def test_the_start_up_is_detected_and_left_out(ingested: Ingest) -> None:
    dataset = ingested()
    run = dataset.runs.iloc[0]
    assert (run.printed_lines, run.steady_lines, run.settled_at_step, run.steadiness) == (121, 116, 5, "steady")
    assert "start-up: the first 5 lines" in run.steady_window
    steps = dataset.steps[(dataset.steps["identity"] == run.identity) & (dataset.steps["repetition"] == 1)]
    assert steps["window"].value_counts().to_dict() == {"training": 116, "warmup": 5, "left_out": 0}
    counted = steps[steps["window"] == "training"]
    assert run.throughput == pytest.approx(128 * len(counted) / counted["seconds"].sum())
    assert run.final_loss == pytest.approx(5.8)


@pytest.mark.usefixtures("small_archive")
def test_dlperf_window_is_next_to_the_steady_window(ingested: Ingest) -> None:
    run = ingested().runs.iloc[0]
    assert run.fixed_window == "20 to 119"
    assert run.fixed_window_mean_of_rates == pytest.approx(RATE, rel=0.005)
    assert run.fixed_window_mean_of_rates >= run.fixed_window_throughput


@pytest.mark.usefixtures("small_archive")
def test_a_truncated_log_never_enters_a_median(ingested: Ingest, write_log: WriteLog) -> None:
    slow = write_log("1n1g/r50_b128_fp32_4.log", seed=4, steps=60)
    slow.write_text(slow.read_text().replace("elapse 0.", "elapse 9."))
    dataset = ingested()
    assert "truncated: ends at step 60, but a different repetition has 120" in reason(dataset, 4)
    assert dataset.configurations["throughput"].iloc[0] == pytest.approx(RATE, rel=0.005)
    assert 4 not in dataset.steps.loc[dataset.steps["identity"].str.contains("1n1d"), "repetition"].tolist()


def test_a_log_with_fewer_steps_than_requested_is_truncated(
    folder: Path, ingested: Ingest, write_log: WriteLog
) -> None:
    write_log("1n1g/r50_b128_fp32_1.log", steps=60)
    assert reason(ingested(), 1) == ""
    file = folder / "identity.yaml"
    file.write_text(file.read_text().replace("model: r50", "model: r50\n  steps_planned: 120"))
    assert "ends at step 60, but 120 were requested" in reason(ingested(), 1)


def test_a_log_that_is_empty_or_not_text_is_refused_with_that_reason(
    folder: Path, ingested: Ingest, write_log: WriteLog
) -> None:
    write_log("1n1g/r50_b128_fp32_3.log")
    (folder / "1n1g/r50_b128_fp32_1.log").touch()
    (folder / "1n1g/r50_b128_fp32_2.log").write_bytes(bytes(range(256)) * 9)
    dataset = ingested()
    assert reason(dataset, 1) == "1n1g/r50_b128_fp32_1.log: is empty"
    assert reason(dataset, 2) == "1n1g/r50_b128_fp32_2.log: contains no text"
    assert reason(dataset, 3) == ""


def test_damaged_gzip_is_truncated(ingested: Ingest, write_log: WriteLog) -> None:
    for repetition in (1, 2):
        log = write_log(f"1n1g/r50_b128_fp32_{repetition}.log", seed=repetition)
        packed = gzip.compress(log.read_bytes())
        log.with_name(f"{log.name}.gz").write_bytes(packed if repetition == 1 else packed[: len(packed) // 2])
        log.unlink()
    dataset = ingested()
    assert reason(dataset, 1) == ""
    assert "truncated" in reason(dataset, 2)


@pytest.mark.usefixtures("small_archive")
def test_a_missing_baseline_is_an_error_and_no_speedup(folder: Path, ingested: Ingest) -> None:
    shutil.rmtree(folder / "1n1g")
    dataset = ingested()
    assert dataset.configurations["speedup"].isna().all()
    assert len(errors_of(dataset)) == 2
    assert all("no run of its declared baseline" in message for message in errors_of(dataset))
    assert dataset.configurations["unsupported_reason"].tolist()[-1] == "none of the ingested logs is of it"


@pytest.mark.parametrize(("declared", "rate"), [({}, None), ({"tokens_per_sample": 1}, 30.5)])
def test_a_rate_without_a_unit_is_used_if_tokens_per_sample_is_declared(
    folder: Path, ingested: Ingest, declared: dict[str, int], rate: float | None
) -> None:
    stats = '"key": "tracked_stats", "value": {{"throughput": 30.5}}'
    line = f':::MLLOG {{{{"time_ms": 1, {stats}, "metadata": {{{{"step": {{}}}}}}}}}}\n'
    (folder / "run_1.log").write_text("".join(line.format(step) for step in range(100, 2100, 100)))
    declare(folder, devices_per_node=8, **declared)
    dataset = ingested()
    refused = "prints a rate but not what it counts; state tokens_per_sample, 1 if it counts samples"
    assert (refused in reason(dataset, 1, devices_per_node=8)) == (rate is None)
    assert rate is None or dataset.runs["throughput"].iloc[0] == pytest.approx(rate)


def speedometer(rates: list[float]) -> str:
    """Return the lines of MXNet's Speedometer, in one process for all its devices."""
    lines = [f"INFO:root:Epoch[0] Batch [{20 * k}]\tSpeed: {rate:.2f} samples/sec" for k, rate in enumerate(rates, 1)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("nodes", "logs"), [(1, ["run_1.log"]), (2, ["run_1/node0.log", "run_1/node1.log"])])
def test_a_process_that_drives_several_devices_prints_for_all_of_them(
    folder: Path, ingested: Ingest, nodes: int, logs: list[str]
) -> None:
    for node, log in enumerate(logs):
        (folder / log).parent.mkdir(exist_ok=True)
        (folder / log).write_text(speedometer([2800 + k % 7 + node for k in range(20)]))
    declared = {"nodes": nodes, "devices_per_node": 8, "batch_per_device": 64}
    declare(folder, **declared)
    assert "state devices_per_process" in ingested().runs["reason"][0]
    declare(folder, **declared, devices_per_process=8)
    run = ingested().runs.iloc[0]
    assert run.throughput == pytest.approx(2803 * nodes, rel=0.001)
    assert (run.ranks_expected, run.ranks_seen, run.global_batch) == (nodes, nodes, 512 * nodes)
    assert run.merge_rule.endswith("; a rank drives 8 devices")


def test_a_log_with_more_steps_than_it_planned_refuses_no_other_run(ingested: Ingest, write_log: WriteLog) -> None:
    for repetition in (1, 2, 3):
        write_log(f"1n1g/r50_b128_fp32_{repetition}.log", seed=repetition, head=("max_iter: 121",))
    odd = write_log("1n1g/r50_b128_fp32_2.log", seed=2, head=("max_iter: 121",))
    odd.write_text(odd.read_text().replace("batch 120]", "batch 919]"))
    dataset = ingested()
    assert "it has step 919, but planned 121 steps" in reason(dataset, 2)
    assert reason(dataset, 1) == reason(dataset, 3) == ""


def test_a_log_of_two_levels_has_no_one_rate(ingested: Ingest, write_log: WriteLog) -> None:
    log = write_log("1n1g/r50_b128_fp32_1.log")
    lines = log.read_text().splitlines()
    log.write_text("\n".join([*lines[:60], *(_slower(line, 2.0) for line in lines[60:])]) + "\n")
    dataset = ingested()
    levels = "349.902 samples/s at steps 5 to 59, 174.893 samples/s at steps 60 to 120"
    assert reason(dataset, 1) == f"long parts at different levels, so no single rate: {levels}"
    assert dataset.runs["rate_levels"].tolist() == [levels]
    assert dataset.runs["behaviour"].tolist() == ["slow-down"]


def test_a_repetition_with_fewer_logs_than_the_others_is_diagnosed(ingested: Ingest, write_log: WriteLog) -> None:
    for repetition in (1, 2, 3):
        for node in (0, 1)[: 1 if repetition == 3 else 2]:
            write_log(f"2n1g/node{node}/r50_b128_fp32_{repetition}.log", 1, seed=10 * repetition + node)
    messages = ingested().diagnostics["message"].tolist()
    assert "has 1 log, other repetitions have 2: is one missing?" in messages


def test_a_window_of_one_line_is_diagnosed(folder: Path, ingested: Ingest) -> None:
    (folder / "1n8g").mkdir()
    shutil.copy(SAMPLES / "plsc_2_2_complete_real.log.gz", folder / "1n8g/r50_b128_fp16_1.log.gz")
    assert "DLPerf's window has only 1 line of this log" in ingested().diagnostics["message"].tolist()


@pytest.mark.usefixtures("small_archive")
def test_two_programs_in_one_folder_give_no_number(folder: Path, ingested: Ingest, write_log: WriteLog) -> None:
    log = write_log("1n8g/r50_b128_fp32_4.log")
    shutil.copy(SAMPLES / "plsc_2_2_real.log", log)
    dataset = ingested()
    for repetition in (1, 2, 3, 4):
        assert "mixed folder" in reason(dataset, repetition, devices_per_node=8)
    assert reason(dataset, 1) == ""


@pytest.mark.parametrize(("mode", "counts"), [("training", True), ("forward-only", False), ("evaluation", False)])
def test_a_log_in_which_nothing_is_trained_is_refused(folder: Path, ingested: Ingest, mode: str, counts: bool) -> None:
    declare(folder / "case", batch_per_device=64)
    text = (SAMPLES / "tf_cnn_benchmarks_real.log").read_text()
    (folder / "case/run_1.log").write_text(text.replace("Mode:        training", f"Mode:        {mode}"))
    refusal = "" if counts else f"case/run_1.log: states mode {mode}, in which nothing is trained"
    assert reason(ingested(), 1) == refusal


@pytest.mark.parametrize(("every", "counts"), [(50, True), (9, False)])
def test_many_steps_without_a_rate_refuse_a_run(folder: Path, ingested: Ingest, every: int, counts: bool) -> None:
    declare(folder / "case")
    rates = (0.0 if step % every == 1 else 350.0 + step % 3 for step in range(100))
    lines = (f"Epoch[0] Batch [{step}]\tSpeed: {rate:.2f} samples/sec\n" for step, rate in enumerate(rates))
    (folder / "case/run_1.log").write_text("".join(lines))
    refusal = "at 11 of 100 steps throughput gives no rate above 0"
    assert counts == (refusal not in reason(ingested(), 1))


def test_a_log_that_starts_over_has_lost_no_rank(ingested: Ingest, write_log: WriteLog) -> None:
    log = write_log("1n1g/r50_b128_fp32_1.log", steps=99)
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join([*lines[:70], *lines[10:]]))
    refusal = "steps start over at line 71: several runs in one log, or a resumed one"
    assert reason(ingested(), 1) == f"1n1g/r50_b128_fp32_1.log: {refusal}"


@pytest.mark.parametrize("seconds", ["1e308", "1e-308"])
def test_a_time_that_nothing_takes_is_left_out(ingested: Ingest, write_log: WriteLog, seconds: str) -> None:
    log = write_log("1n8g/r50_b128_fp32_1.log", 8)
    log.write_text(re.sub(r"(batch 60\].*elapse )\S+", rf"\g<1>{seconds}", log.read_text()))
    assert ingested().runs["throughput"].iloc[0] == pytest.approx(8 * RATE, rel=0.005)


def test_one_log_per_rank_is_merged_by_the_slowest(ingested: Ingest, write_log: WriteLog) -> None:
    for rank, slower in ((0, 1.0), (1, 2.0)):
        log = write_log(f"1n2g/r50_b128_fp32_1/workerlog.{rank}", 2, seed=rank)
        if slower > 1:
            log.write_text("\n".join(_slower(line, slower) for line in log.read_text().splitlines()))
    run = ingested().runs.iloc[0]
    assert run.ranks_seen == 2
    assert run.throughput == pytest.approx(2 * RATE / 2, rel=0.01)


def _slower(line: str, factor: float) -> str:
    head, _, seconds = line.partition("elapse ")
    return f"{head}elapse {float(seconds.split()[0]) * factor:.4f} sec"


def test_a_rank_that_died_makes_the_run_truncated(ingested: Ingest, write_log: WriteLog) -> None:
    for rank, steps in ((0, 120), (1, 70)):
        write_log(f"1n2g/r50_b128_fp32_1/workerlog.{rank}", 2, seed=rank, steps=steps)
    assert "truncated" in reason(ingested(), 1, devices_per_node=2)


def test_ranks_whose_logs_contain_no_training_are_missing(folder: Path, ingested: Ingest, write_log: WriteLog) -> None:
    for rank in range(4):
        log = write_log(f"1n4g/r50_b128_fp32_1/workerlog.{rank}", 4, seed=rank)
        if rank == 3:
            log.write_text("Killed\n")
    assert "1 of 4 logs of ranks contain no training: " in reason(ingested(), 1, devices_per_node=4)


def test_validation_stalls_of_a_complete_log_are_detected(folder: Path, ingested: Ingest) -> None:
    (folder / "1n8g").mkdir()
    shutil.copy(SAMPLES / "plsc_2_2_complete_real.log.gz", folder / "1n8g/r50_b128_fp16_1.log.gz")
    dataset = ingested()
    run = dataset.runs.iloc[0]
    assert reason(dataset, 1, devices_per_node=8) == ""
    assert "every 2000 steps" in run.steady_window
    # The times of its lines and its printed rates agree on what validation and new epochs cost: 14 %.
    counted = dataset.steps[dataset.steps["window"] != "warmup"]
    printed_with_stalls = len(counted) / counted["seconds"].sum() * run.global_batch
    assert run.wall_throughput == pytest.approx(printed_with_stalls, rel=0.002)
    assert run.wall_throughput == pytest.approx(0.858 * run.throughput, rel=0.002)
    assert run.fixed_window == "50 to 149"
    assert run.fixed_window_mean_of_rates < 0.6 * run.throughput


def test_files_of_no_run_are_diagnosed(ingested: Ingest, write_log: WriteLog) -> None:
    write_log("1n1g/r50_b128_fp32_1.log")
    write_log("1n1g/strange.log")
    messages = ingested().diagnostics["message"].tolist()
    assert any("1 file of no run, not read: 1n1g/strange.log" in message for message in messages)


@pytest.mark.usefixtures("small_archive")
def test_logs_that_the_identity_names_must_exist(folder: Path, ingested: Ingest) -> None:
    identify_logs(folder, accept=True)
    (folder / "1n8g/r50_b128_fp32_2.log").unlink()
    with pytest.raises(IdentityError, match=r"are missing: 1n8g/r50_b128_fp32_2\.log"):
        ingested()


def test_a_single_declared_configuration_has_no_baseline_that_nobody_declared(
    folder: Path, ingested: Ingest, write_log: WriteLog
) -> None:
    write_log("train.log", 8)
    declare(folder, devices_per_node=8)
    dataset = ingested()
    assert dataset.plan.about.endswith("baseline: none declared.")
    assert dataset.configurations["devices_per_node"].tolist() == [8]
    assert errors_of(dataset) == []


@pytest.mark.usefixtures("small_archive")
def test_a_declared_baseline_and_stated_parameters_are_kept(folder: Path, ingested: Ingest) -> None:
    file = identify_logs(folder).file
    text = file.read_text().replace("devices_per_node: 1}", "devices_per_node: 8}")
    file.write_text(text.replace("precision: fp32", "precision: fp32\n  image_size: 224\n  link: NVLink"))
    dataset = ingested()
    assert dataset.configurations["is_baseline"].tolist() == [False, True, False]
    assert dataset.configurations["image_size"].tolist() == [224, 224, 224]
    assert dataset.configurations["efficiency"].to_numpy() == pytest.approx([1, 1, 1], rel=0.01)
    assert set(dataset.runs["link"]) == {"NVLink"}


@pytest.mark.usefixtures("small_archive")
def test_many_processes_read_what_one_reads(ingested: Ingest, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = ingested()
    monkeypatch.setattr(run_reader, "WORTH_A_POOL_BYTES", 0)
    together = ingested()
    assert alone.runs.equals(together.runs)
    assert alone.steps.equals(together.steps)
    assert alone.diagnostics.equals(together.diagnostics)


@pytest.mark.usefixtures("small_archive")
def test_a_measured_study_and_an_ingested_one_are_never_confused(
    ingested: Ingest, folder: Path, paths: StudyPaths
) -> None:
    dataset = ingested()
    with pytest.raises(EvidenceError, match="was not measured but ingested"):
        collect(paths)
    assert len(up_to_date(paths).runs) == len(dataset.runs)
    example_study(StudyPaths.of("measured"))
    with pytest.raises(IdentityError, match="is a measured study"):
        refuse_others(StudyPaths.of("measured"), folder)


@pytest.mark.usefixtures("small_archive")
def test_logs_of_a_different_folder_replace_no_study_of_the_same_name(
    ingested: Ingest, folder: Path, paths: StudyPaths
) -> None:
    ingested()
    refuse_others(paths, folder)
    with pytest.raises(IdentityError, match=r"was ingested from .*, not from .*; give this one a different name"):
        refuse_others(paths, folder.parent)


@pytest.mark.parametrize(
    ("startup_seconds", "warning"),
    [
        (0, ""),
        (
            100,
            "the rate is a mean since the start, which includes the start-up unless the program leaves it out: "
            "66.67 samples/s by the last line, about 100 from step 120 to 200",
        ),
    ],
)
def test_a_mean_since_the_start_is_a_steady_rate_only_without_a_startup(
    folder: Path, ingested: Ingest, startup_seconds: int, warning: str
) -> None:
    """A hundred samples/s, 128 a step on 1 device, after the start-up."""
    declare(folder)
    lines = []
    for step in range(20, 201, 20):
        seconds = startup_seconds + step
        lines.append(
            f"[2021-03-02 10:00:{step % 60:02},001] [INFO] 0/{step}, RunningAvgSamplesPerSec={100 * step / seconds}"
        )
    (folder / "run_1.log").write_text("\n".join(lines) + "\n")
    messages = ingested().diagnostics["message"]
    assert list(messages[messages.str.contains("since the start")]) == ([warning] if warning else [])


@pytest.mark.parametrize(("precision", "count"), [("fp31", 1), ("fp32", 0), ("FP16", 0), ("int8", 0)])
def test_a_precision_that_is_nearly_a_known_one_has_a_warning(
    folder: Path, ingested: Ingest, precision: str, count: int
) -> None:
    declare(folder / "case", precision=precision)
    lines = (f"Epoch[0] Batch [{step}]\tSpeed: {350 + step % 3:.2f} samples/sec\n" for step in range(100))
    (folder / "case/run_1.log").write_text("".join(lines))
    messages = ingested().diagnostics["message"]
    [*warnings] = messages[messages.str.contains("precision is")]
    assert len(warnings) == count
    assert all("precision is 'fp31'; did you mean fp32? the known precisions are fp32" in text for text in warnings)
