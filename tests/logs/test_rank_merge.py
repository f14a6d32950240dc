"""What several ranks print becomes the rate of their job, or is refused."""

import math
from pathlib import Path

import pytest

from dlperf_study.core.errors import LogError
from dlperf_study.logs.format import Merge
from dlperf_study.logs.log_reader import read_log
from dlperf_study.logs.rank_checks import JobSize
from dlperf_study.logs.rank_merge import job_series
from tests.logs.small_logs import elapse, write_and_read

SAMPLES = Path(__file__).parent / "samples"
SPEED = "2016-08-19 10:58:12,{} Node[0] Epoch[0] Batch [{}]\tSpeed: {} samples/sec\tTrain-{}=0.1\n"
TOKENS = "2020-05-01 10:00:00,{} [step 10]\tmlm_loss=7.5\tthroughput={}K tks/s\tlr=0.0001 time=1.0\n"
TRAINER = "Pass 0, Batch 0, Cost 2.4, {{}}, spent: {}\n"
EPOCH_TIME = "Train epoch time: 2500.0 ms, per step time: 250.{} ms\n"
DLL = 'DLLL {{"type": "LOG", "step": {}, "data": {{"train.total_ips": {}}}}}\n'
TOTAL = "Total img/sec on 8 GPU(s): 863.2 +-11.4\n"
EPOCHS = ["".join(DLL.format([epoch, step], 100 + step) for step in range(6)) for epoch in range(2)]


def plsc(seconds, throughput):
    head = "[2023/01/02 03:04:05] plsc INFO: [Train][Epoch 1/2][Iter: {}/50]"
    line = head + "loss: 6.9, batch_cost: {}, ips: {} images/sec\n"
    return "".join(line.format(step, seconds, throughput + step % 2) for step in range(1, 21))


def speedometer(more):
    line = "INFO:root:Epoch[0] Batch [{}]\tSpeed: {}.00 samples/sec\taccuracy=0.2\n"
    return "".join(line.format(step, 400 + step + more) for step in range(10, 100, 10))


@pytest.fixture
def series(tmp_path):
    """Return a function that returns the series of a job, given the texts of its logs or the name of a sample."""

    def read(texts, *size):
        if isinstance(texts, str):
            return job_series([read_log(SAMPLES / f"{texts}.log")], JobSize(*size))
        logs = [write_and_read(tmp_path, f"{rank}.log", text) for rank, text in enumerate(texts)]
        return job_series(logs, JobSize(*size))

    return read


MERGED = {
    "slowest rank": ([elapse(1, "0.25"), elapse(1, "0.5")], (1, 2, 128), [256 / 0.5]),
    "total of the job": ([TOTAL], (1, 8, 32), [863.2]),
    "copies of the total": ([TOTAL, TOTAL], (1, 8, 32), [863.2]),
    "trainers add up": ([TRAINER.format(0.25), TRAINER.format(0.5)], (2, 1, 128), [128 / 0.25 + 128 / 0.5]),
    "once per measure of quality": (
        [SPEED.format(137, 50, 95.38, "accuracy") + SPEED.format(137, 50, 95.38, "top_k")],
        (1, 1, 32),
        [95.38],
    ),
    "named rank a moment later": (
        [SPEED.format(137, 50, 95.38, "accuracy") + SPEED.format(138, 50, 95.38, "top_k")],
        (1, 1, 32),
        [95.38],
    ),
    "repeated at step 0": (
        [
            SPEED.format(137, 0, 90.5, "a")
            + SPEED.format(137, 0, 90.5, "b")
            + SPEED.format(137, 50, 95.5, "a")
            + SPEED.format(137, 50, 95.5, "b")
            + SPEED.format(137, 100, 99.5, "a")
        ],
        (1, 1, 32),
        [90.5, 95.5, 99.5],
    ),
    "ranks without a name in one log": (
        ["".join(TOKENS.format(*printed) for printed in ((100, 17), (200, 17), (300, 20)))],
        (1, 3, 32),
        [17000 + 17000 + 20000],
    ),
    "ranks without a name in several logs": (
        [TOKENS.format(100, 17), TOKENS.format(200, 18), TOKENS.format(300, 20) + TOKENS.format(400, 20)],
        (1, 4, 32),
        [17000 + 18000 + 20000 + 20000],
    ),
    "a named rank and one without a name": (
        ["".join(f"{node}Epoch[0] Batch [50]\tSpeed: 95.5 samples/sec\n" for node in ("Node[0] ", ""))],
        (1, 2, 32),
        [95.5 + 95.5],
    ),
    "mean of an epoch is no step": (
        [EPOCHS[0] + DLL.format([0], 50) + EPOCHS[1]],
        (1, 8, 128),
        2 * [100, 101, 102, 103, 104, 105],
    ),
    "a time of 0": ([elapse(1, "0.25") + elapse(2, "0.0000")], (1, 1, 128), [512, math.nan]),
    "throughput and time make the batch": ([plsc(0.10788, 9500)], (1, 8, 128), [9501, 9500] * 10),
    "a time of few digits": ([plsc(0.1, 9500)], (1, 8, 128), [9501, 9500] * 10),
    "similar copies": ([plsc(0.1078, 9500 + 50 * rank) for rank in range(2)], (1, 8, 128), [9526, 9525] * 10),
}


@pytest.mark.parametrize(("texts", "size", "throughputs"), MERGED.values(), ids=MERGED)
def test_the_throughput_of_the_job_follows_from_what_its_ranks_print(series, texts, size, throughputs):
    job = series(texts, *size)
    assert job.throughput.tolist() == pytest.approx(throughputs, nan_ok=True)
    assert job.diagnostics == ()


@pytest.mark.parametrize(
    ("sample", "size", "first_throughput", "unit"),
    [
        ("plsc_2020_8ranks_constructed", (1, 8, 64), 1396.49, "samples/s"),
        ("gluonnlp_bert_4ranks_constructed", (1, 4, 32), 17100 + 17400 + 17200 + 16900, "tokens/s"),
        ("horovod_synthetic_real", (1, 4, 32), 4 * 108.3, "samples/s"),
        # Its speed is that of all nodes already.
        ("paddle_bert_constructed", (2, 8, 32), 0.31 * 8 * 32, "samples/s"),
    ],
)
def test_the_throughputs_of_samples_are_those_of_their_jobs(series, sample, size, first_throughput, unit):
    job = series(sample, *size)
    assert (job.throughput[0], job.unit) == (pytest.approx(first_throughput), unit)


def test_a_rule_names_what_was_merged(series):
    assert series([elapse(1), elapse(1)], 1, 2, 128).rule.startswith("global batch / ")
    assert series([TOTAL], 1, 8, 32).rule == Merge.ONE
    assert series([TOTAL, TOTAL], 1, 8, 32).rule == Merge.COPIES


NINE_STEPS = "".join(map(elapse, range(9)))


DIAGNOSED = {
    "one of four": ("horovod_synthetic_real", (1, 4, 32)),
    "a step of one rank": ([NINE_STEPS] * 3 + [NINE_STEPS.replace(elapse(4), "")], (1, 4, 128)),
    "a step and four ranks": ([NINE_STEPS] * 3 + [NINE_STEPS.replace(elapse(4), "")], (1, 8, 128)),
    "the same throughput twice": ([speedometer(0)] * 2, (1, 2, 128)),
    "different throughputs": ([speedometer(0), speedometer(1)], (1, 2, 128)),
}


@pytest.mark.parametrize(("texts", "size"), DIAGNOSED.values(), ids=DIAGNOSED)
def test_ranks_that_are_silent_or_print_the_very_same_are_diagnosed(series, snapshot, texts, size):
    assert [diagnostic.message for diagnostic in series(texts, *size).diagnostics] == snapshot


REFUSED = {
    "four of one": ("gluonnlp_bert_4ranks_constructed", (1, 1, 32)),
    "four of five": ("gluonnlp_bert_4ranks_constructed", (1, 5, 32)),
    "one process of eight": ("gluonnlp_bert_one_process_real", (1, 8, 16)),
    "one of twenty": ("paddle_vgg16_fluid_constructed", (20, 1, 128)),
    "no rank represents others": ("mxnet_speedometer_interval_real", (1, 8, 128)),
    "no throughput": ("elasticdl_real", (1, 1, 64)),
    "several runs": ("tf_cnn_benchmarks_servers_real", (1, 1, 32)),
    "a trainer is missing": ([TRAINER.format(0.25)], (2, 1, 128)),
    "a rank is missing": ([SPEED.format(137, 50, 95.5, "a")], (1, 2, 32)),
    "no step": (["".join(map(EPOCH_TIME.format, range(3)))], (1, 1, 32)),
    "equal lines of no step": ([3 * EPOCH_TIME.format(0)], (1, 1, 32)),
    "not the batch": ([plsc(0.10788, 9500)], (2, 8, 128)),
    "different copies": ([plsc(0.1078, 9500), plsc(0.0539, 19000)], (1, 8, 128)),
    "different formats": ([plsc(0.1078, 9500), elapse(1)], (1, 8, 128)),
}


@pytest.mark.parametrize(("texts", "size"), REFUSED.values(), ids=REFUSED)
def test_a_job_whose_throughput_can_not_be_known_is_refused(series, refused, texts, size):
    with refused(LogError):
        series(texts, *size)
