"""Runs that can't be counted are rows without a measurement, with the reason; the runs next to them are counted."""

import gzip
import os
import shutil

import pytest

from dlperf_study.logs.identification import identify_logs
from tests.logs.ingest.conftest import SAMPLES, declare, refusals, speedometer, write_docs_format, write_docs_log

SCENARIOS = []
FIRST, SECOND = "1n1g/r50_b128_fp32_1.log", "1n1g/r50_b128_fp32_2.log"
EIGHT = "1n8g/r50_b128_fp32_1.log"


def refuses(*runs, **arguments):
    """Make a function that writes logs a case; ``runs`` are those that are refused, and all others are counted."""

    def add(write):
        name = " ".join([write.__name__.removesuffix("_").replace("_", " "), *map(str, arguments.values())])
        SCENARIOS.append(pytest.param(write, arguments, set(runs), id=name))
        return write

    return add


@refuses("1n1g 4")
def ends_before_other_repetitions(folder, write_log):
    for repetition, steps in ((1, 120), (2, 120), (4, 60)):
        write_log(f"1n1g/r50_b128_fp32_{repetition}.log", steps=steps)


@refuses("1n1g 1")
def ends_before_the_requested_steps(folder, write_log):
    write_log(FIRST, steps=60)
    file = identify_logs(folder, confirm=True).file
    file.write_text(file.read_text().replace("model: r50", "model: r50\n  steps_planned: 120"))


@refuses("1n1g 1", "1n1g 2")
def is_empty_or_no_text(folder, write_log):
    write_log("1n1g/r50_b128_fp32_3.log")
    (folder / FIRST).touch()
    (folder / SECOND).write_bytes(bytes(range(256)) * 9)


@refuses("1n1g 2", "1n1g 3")
def is_no_file(folder, write_log):
    write_log(FIRST)
    os.mkfifo(folder / SECOND)
    (folder / "1n1g/r50_b128_fp32_3.log").symlink_to(folder / "moved.log")
    os.mkfifo(folder / "1n1g/more.zip")


@refuses("1n1g 2")
def is_damaged_gzip(folder, write_log):
    for repetition in (1, 2):
        log = write_log(f"1n1g/r50_b128_fp32_{repetition}.log", seed=repetition)
        packed = gzip.compress(log.read_bytes(), compresslevel=0, mtime=0)
        log.with_name(f"{log.name}.gz").write_bytes(packed if repetition == 1 else packed[: len(packed) // 2])
        log.unlink()


@refuses("1n8g 1", "1n8g 4")
def is_in_a_folder_of_two_programs(folder, write_log):
    write_log(FIRST)
    write_log(EIGHT, 8)
    shutil.copy(SAMPLES / "plsc_2_2_real.log", folder / "1n8g/r50_b128_fp32_4.log")


@refuses(mode="training")
@refuses("1n1g 1", mode="forward-only")
@refuses("1n1g 1", mode="evaluation")
def states_a_mode_of(folder, write_log, mode):
    declare(folder / "case", batch_per_device=64)
    text = (SAMPLES / "tf_cnn_benchmarks_real.log").read_text()
    (folder / "case/run_1.log").write_text(text.replace("Mode:        training", f"Mode:        {mode}"))


@refuses(every=50)
@refuses("1n1g 1", every=9)
def has_no_throughput_at_steps(folder, write_log, every):
    declare(folder / "case")
    throughputs = (0.0 if step % every == 0 else 350.0 + step % 3 for step in range(100))
    (folder / "case/run_1.log").write_text(speedometer(throughputs))


@refuses("1n2g 1")
def has_a_rank_that_died(folder, write_log):
    for rank, steps in ((0, 120), (1, 70)):
        write_log(f"1n2g/r50_b128_fp32_1/workerlog.{rank}", 2, seed=rank, steps=steps)


@refuses("1n4g 1")
def has_a_rank_without_training(folder, write_log):
    for rank in range(4):
        log = write_log(f"1n4g/r50_b128_fp32_1/workerlog.{rank}", 4, seed=rank)
        if rank == 3:
            log.write_text("Killed\n")


@refuses("1n1g 2", head="batch_size: 64")
@refuses("1n1g 2", head="model : VGG16")
@refuses("1n1g 2", head="use_fp16: True")
def contradicts_its_name(folder, write_log, head):
    write_log(FIRST, head=("batch_size: 128", "use_fp16: False"))
    write_log(SECOND, head=(head,))


@refuses("1n1g 1", sample="nvidia_dll_pytorch_resnet50_real", data_loader="files")
@refuses("1n1g 1", sample="tf_cnn_benchmarks_real", data_loader="files")
@refuses(sample="tf_cnn_benchmarks_real", data_loader="synthetic_device")
@refuses("1n1g 1", sample="horovod_synthetic_real", data_loader="dali")
@refuses("1n1g 1", sample="paddle_resnet50_elapse_constructed", data_loader="dali")
def contradicts_its_data_loader_or_not(folder, write_log, sample, data_loader):
    """Most samples are of more devices or steps, which is why they are refused in any case."""
    shutil.copy(SAMPLES / f"{sample}.log", folder / "run_1.log")
    declare(folder, batch_per_device=64, data_loader=data_loader)


@refuses("1n8g 1", sample_ratio=1.0, batch=128)
@refuses("1n8g 1", sample_ratio=0.1, batch=64)
@refuses(sample_ratio=0.1, batch=128)
def contradicts_its_sample_ratio_or_batch_or_not(folder, write_log, sample_ratio, batch):
    shutil.copy(SAMPLES / "plsc_2_2_complete_real.log.gz", folder / "run_1.log.gz")
    job = {"devices_per_node": 8, "precision": "amp_fp16", "model": "some"}
    declare(folder, **job, sample_ratio=sample_ratio, batch_per_device=batch)


@refuses()
def is_long_and_differs_from_another_at_its_end_only(folder, write_log):
    """More than what is read at once is alike."""
    logs = [write_log(FIRST), write_log(EIGHT, 8)]
    size = max(log.stat().st_size for log in logs)
    for log in logs:
        log.write_text(("#" * 99 + "\n") * 11_000 + log.read_text().ljust(size, "\n"))


@refuses("1n1g 2")
def is_a_copy_of_another_repetition(folder, write_log):
    shutil.copy(write_log(FIRST), folder / SECOND)


@refuses("1n1g 1", "1n8g 1")
def is_also_in_another_configuration(folder, write_log):
    """Nobody can tell which of the two is where it belongs."""
    for log in (FIRST, SECOND, "1n8g/r50_b128_fp32_2.log", EIGHT):
        write_log(log)
    shutil.copy(folder / FIRST, folder / EIGHT)


@refuses("1n1g 1", "1n1g 3", "1n8g 1", change="packed")
@refuses("1n1g 1", "1n1g 3", "1n8g 1", change="other ends of lines")
def is_also_in_another_configuration_and(folder, write_log, change):
    log = write_log(EIGHT, 8).read_bytes()
    for path in (SECOND, "1n8g/r50_b128_fp32_2.log"):
        write_log(path)
    for path in (FIRST, "1n1g/r50_b128_fp32_3.log"):
        copy = gzip.compress(log, mtime=0) if change == "packed" else log.replace(b"\n", b"\r\n")
        write_log(path).write_bytes(copy)


@refuses("2n1g 2")
def has_the_log_of_a_node_of_another_run(folder, write_log):
    nodes = [write_log(f"2n1g/node{node}/r50_b128_fp32_1.log") for node in (0, 1)]
    write_log("2n1g/node0/r50_b128_fp32_2.log")
    shutil.copy(nodes[1], nodes[1].with_name("r50_b128_fp32_2.log"))


@refuses("1n1g 2")
def is_unlike_its_declared_format(folder, write_log):
    for repetition in (1, 2):
        write_docs_log(folder / f"run_{repetition}.log")
    log = folder / "run_2.log"
    log.write_text(log.read_text().replace("loss 6.71", "loss: 6,71"))
    write_docs_format(folder)
    declare(folder)


@pytest.mark.parametrize(("write", "arguments", "runs"), SCENARIOS)
def test_a_run_that_can_not_be_counted_is_refused_with_the_reason(
    folder, ingested, write_log, snapshot, write, arguments, runs
):
    write(folder, write_log, **arguments)
    dataset = ingested()
    reasons = refusals(dataset)
    assert set(reasons) == runs
    assert reasons == snapshot
    counted = dataset.runs[dataset.runs["status"] == "completed"]
    assert counted["throughput"].notna().all()
    assert set(dataset.steps["repetition"]) == set(counted["repetition"])
