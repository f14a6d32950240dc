"""Runs of users' programs: what their logs lack is a warning, and what they contradict is still an error."""

import pytest

from dlperf_study.core.paths import StudyPaths
from dlperf_study.metrics.communication import exposed_communication_seconds
from dlperf_study.metrics.computation import input_seconds
from dlperf_study.metrics.throughput import throughput, token_throughput
from dlperf_study.records.rank_agreement import PROGRAM
from dlperf_study.records.run import read_run
from dlperf_study.study.job import RunStatus
from tests.evidence_factory import change, configuration, read_lines, write_lines, write_run

ASKED = configuration(devices_per_node=2, compute_only_steps=0, communication_only_steps=0, input_only_steps=0)
#: What only the worker knows.
OF_THE_WORKER = ("parameters", "gradient_bytes", "flops_per_sample", "communication_threads", "flops_source")


@pytest.fixture
def run(tmp_path):
    return write_run(StudyPaths(tmp_path / "study"), ASKED, 1)


def rewrite(run, rank, first=None, window=None, last=None, without=()):
    """Give the log of a rank other values in its lines."""
    path = run.rank_log(rank)
    lines = read_lines(path)
    lines[0] |= {"recorded_by": "recorder", "scope": "rank", **(first or {})}
    for line in lines[1:-1]:
        line |= window or {}
    lines[-1] |= last or {}
    write_lines(path, [{key: value for key, value in line.items() if key not in without} for line in lines])


def program_subjects(run):
    return [diagnostic.subject for diagnostic in read_run(run).diagnostics].count(PROGRAM)


def test_a_program_without_a_model_counts_with_warnings(run):
    for rank in range(2):
        rewrite(run, rank, without=(*OF_THE_WORKER, "parameter_checksum", "initial_checksum"))
    read = read_run(run)
    assert read.completed, read.reason
    assert program_subjects(run) == 2
    assert (exposed_communication_seconds(read), input_seconds(read)) == (None, None)


@pytest.mark.parametrize(("checksum", "rank"), [("initial", 0), ("different", 1)])
def test_parameters_are_judged_for_the_worker_and_doubted_for_a_program(run, checksum, rank):
    checksums = {"parameter_checksum": checksum}
    rewrite(run, rank, last=checksums, first={"recorded_by": "worker"})
    rewrite(run, 1 - rank, first={"recorded_by": "worker"})
    assert read_run(run).status is RunStatus.FAILED
    for each in range(2):
        rewrite(run, each)
    read = read_run(run)
    assert read.completed, read.reason
    assert program_subjects(run) >= 1


def test_a_log_of_the_job_is_that_of_all_ranks(run):
    rewrite(run, 0, first={"recorded_by": "log", "scope": "job", "communication": "unknown"}, without=OF_THE_WORKER)
    run.rank_log(1).unlink()
    change(run, ranks_seen=[0])
    read = read_run(run)
    assert read.completed, read.reason
    assert len(read.ranks) == 1
    assert program_subjects(run) >= 1


def test_recorded_samples_and_tokens_make_the_throughputs(run):
    before = read_run(run)
    for rank in range(2):
        lines = read_lines(run.rank_log(rank))
        training = next(line for line in lines if line.get("name") == "training")
        training["samples"] = [2 * ASKED.batch_per_device] * ASKED.measured_steps
        training["tokens"] = [7] * ASKED.measured_steps
        write_lines(run.rank_log(rank), lines)
    read = read_run(run)
    assert throughput(read) == pytest.approx(2 * throughput(before))
    assert token_throughput(read) == pytest.approx(throughput(before) * 14 / ASKED.global_batch)


def test_a_worker_must_say_what_only_it_knows(run):
    rewrite(run, 0, first={"recorded_by": "worker"}, without=("parameters",))
    read = read_run(run)
    assert read.status is RunStatus.FAILED
    assert "parameters" in read.reason
