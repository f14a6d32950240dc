from pathlib import Path

import pytest

from dlperf_study.errors import LogError
from dlperf_study.logs.format import Merge
from dlperf_study.logs.log_reader import read_log
from dlperf_study.logs.rank_merge import JobSeries, JobSize, job_series
from tests.logs.small_logs import write_and_read

SAMPLES = Path(__file__).parent / "samples"


def series(name: str, *devices: int) -> JobSeries:
    return job_series([read_log(SAMPLES / f"{name}.log")], JobSize(*devices))


def test_copies_of_the_jobs_rate_are_not_added_up() -> None:
    job = series("plsc_2020_8ranks_constructed", 1, 8, 64)
    assert list(job.step) == list(range(0, 80, 10))
    assert job.rate[0] == pytest.approx(1396.49)
    assert not job.diagnostics


def test_rates_of_all_ranks_are_added_up() -> None:
    job = series("gluonnlp_bert_4ranks_constructed", 1, 4, 32)
    assert (job.rate[0], job.unit) == (pytest.approx(17100 + 17400 + 17200 + 16900), "tokens/s")


def test_a_time_gives_the_global_batch_over_the_slowest_rank(tmp_path: Path) -> None:
    line = "[Pass 0, train batch 1] loss 6.9, elapse {} sec\n"
    logs = [write_and_read(tmp_path, f"{rank}.log", line.format(time)) for rank, time in enumerate((0.25, 0.5))]
    job = job_series(logs, JobSize(1, 2, 128))
    assert (list(job.rate), job.rule) == ([256 / 0.5], "global batch / the slowest rank's step")


def test_one_rank_represents_all_that_step_together_with_a_diagnostic() -> None:
    job = series("horovod_synthetic_real", 1, 4, 32)
    assert job.rate[0] == pytest.approx(4 * 108.3)
    assert "1 of 4 ranks printed" in job.diagnostics[0].message


def test_a_total_next_to_the_rates_of_ranks_is_the_jobs(tmp_path: Path) -> None:
    job = job_series(
        [write_and_read(tmp_path, "0.log", "Total img/sec on 8 GPU(s): 863.2 +-11.4\n")], JobSize(1, 8, 32)
    )
    assert (list(job.rate), job.rule) == ([863.2], "one rank prints the number of the whole job")


def test_steps_at_which_a_rank_is_missing_are_counted_and_the_rank_is_not_silent(tmp_path: Path) -> None:
    line = "[Pass 0, train batch {}] loss 6.9, elapse 0.25 sec\n"
    logs = [write_and_read(tmp_path, f"{rank}.log", "".join(map(line.format, range(9)))) for rank in range(3)]
    logs.append(write_and_read(tmp_path, "3.log", "".join(line.format(step) for step in range(9) if step != 4)))
    [diagnostic] = job_series(logs, JobSize(1, 4, 128)).diagnostics
    assert diagnostic.message.startswith("at 1 of 9 steps only 3 of 4 ranks printed: they represent all")
    [diagnostic] = job_series(logs, JobSize(1, 8, 128)).diagnostics
    assert diagnostic.message.startswith(
        "only 4 of 8 ranks printed, and at 1 of 9 steps only 3 of 8 ranks printed: they"
    )


def test_the_speed_of_bert_is_not_multiplied_by_the_nodes_again() -> None:
    assert series("paddle_bert_constructed", 2, 8, 32).rate[0] == pytest.approx(0.31 * 8 * 32)


def test_trainers_of_a_parameter_server_are_added_up_or_it_is_unknown(tmp_path: Path) -> None:
    line = "Pass 0, Batch {}, Cost 2.4, {{}}, spent: {}\n"
    first = write_and_read(tmp_path, "0.log", line.format(0, 0.25))
    second = write_and_read(tmp_path, "1.log", line.format(0, 0.5))
    assert list(job_series([first, second], JobSize(2, 1, 128)).rate) == [128 / 0.25 + 128 / 0.5]
    with pytest.raises(LogError, match="only 1 of 2 ranks printed"):
        job_series([first], JobSize(2, 1, 128))


@pytest.mark.parametrize(
    ("name", "devices", "reason"),
    [
        ("gluonnlp_bert_4ranks_constructed", (1, 1, 32), "step 1 appears 4 times, in a job of 1 rank"),
        ("paddle_vgg16_fluid_constructed", (20, 1, 128), "only 1 of 20 ranks printed.*state devices_per_process$"),
        ("gluonnlp_bert_4ranks_constructed", (1, 5, 32), "only 4 of 5 ranks printed.*the job's rate is unknown$"),
        ("mxnet_speedometer_interval_real", (1, 8, 128), "no rank represents others"),
        ("elasticdl_real", (1, 1, 64), "ElasticDL stage times prints nothing from which the job's rate"),
        ("tf_cnn_benchmarks_servers_real", (1, 1, 32), "several runs in one log"),
    ],
)
def test_a_job_whose_rate_can_not_be_known_is_refused(name: str, devices: tuple[int, ...], reason: str) -> None:
    with pytest.raises(LogError, match=reason):
        series(name, *devices)


def test_logs_of_different_programs_are_refused() -> None:
    logs = [read_log(SAMPLES / f"{name}.log") for name in ("plsc_2020_constructed", "plsc_2_4_constructed")]
    with pytest.raises(LogError, match="different formats: plsc_2020, plsc_2_4"):
        job_series(logs, JobSize(1, 8, 128))


def test_a_rate_that_is_printed_once_per_measure_of_quality_counts_once(tmp_path: Path) -> None:
    prefix = "2016-08-19 10:58:12,137 Node[0] Epoch[0] Batch [50]\tSpeed: 95.38 samples/sec\tTrain-"
    log = write_and_read(tmp_path, "training.log", f"{prefix}accuracy=0.1\n{prefix}top_k_accuracy_5=0.2\n")
    assert list(job_series([log], JobSize(1, 1, 32)).rate) == [95.38]


def test_it_counts_once_even_if_a_named_rank_prints_it_a_moment_later(tmp_path: Path) -> None:
    line = "2016-08-19 10:58:12,{} Node[0] Epoch[0] Batch [50]\tSpeed: 95.38 samples/sec\tTrain-{}=0.1\n"
    log = write_and_read(tmp_path, "training.log", line.format(137, "accuracy") + line.format(138, "top_k_accuracy_5"))
    assert list(job_series([log], JobSize(1, 1, 32)).rate) == [95.38]
    with pytest.raises(LogError, match="only 1 of 2 ranks printed"):
        job_series([log], JobSize(1, 2, 32))


def test_ranks_without_a_name_count_each_although_they_print_the_same(tmp_path: Path) -> None:
    """Their lines differ in the moment only, which says that they are of two ranks."""
    line = "2020-05-01 10:00:00,{} [step 10]\tmlm_loss=7.5\tthroughput={}K tks/s\tlr=0.0001 time=1.0\n"
    lines = [line.format(*printed) for printed in ((100, 17), (200, 17), (300, 20))]
    job = job_series([write_and_read(tmp_path, "training.log", "".join(lines))], JobSize(1, 3, 32))
    assert list(job.rate) == [17000 + 17000 + 20000]


def test_one_process_on_all_devices_is_not_one_of_many_ranks() -> None:
    with pytest.raises(LogError, match="only 1 of 8 ranks printed"):
        job_series([read_log(SAMPLES / "gluonnlp_bert_one_process_real.log")], JobSize(1, 8, 16))


def test_lines_that_name_no_step_are_not_distinguished(tmp_path: Path) -> None:
    line = "Train epoch time: 2500.0 ms, per step time: 250.{} ms\n"
    with pytest.raises(LogError, match="a line that names no step appears 3 times, in a job of 1 rank"):
        job_series([write_and_read(tmp_path, "0.log", "".join(map(line.format, range(3))))], JobSize(1, 1, 32))


def test_the_mean_of_an_epoch_is_not_one_of_its_steps(tmp_path: Path) -> None:
    line = 'DLLL {{"type": "LOG", "step": {}, "data": {{"train.total_ips": {}}}}}\n'
    steps = "".join(line.format([epoch, step], 100 + step) for epoch in range(2) for step in range(6))
    half = len(steps) // 2
    log = write_and_read(tmp_path, "training.log", steps[:half] + line.format([0], 50) + steps[half:])
    job = job_series([log], JobSize(1, 8, 128))
    assert (job.unit, list(job.rate)) == ("samples/s", 2 * [100, 101, 102, 103, 104, 105])


def plsc(seconds: float, rate: float) -> str:
    head = "[2023/01/02 03:04:05] plsc INFO: [Train][Epoch 1/2][Iter: {}/50]"
    line = head + "loss: 6.9, batch_cost: {}, ips: {} images/sec\n"
    return "".join(line.format(step, seconds, rate + step % 2) for step in range(1, 21))


def test_a_rate_and_a_time_that_do_not_make_the_batch_are_refused(tmp_path: Path) -> None:
    log = write_and_read(tmp_path, "0.log", plsc(0.10788, 9500))
    assert len(job_series([log], JobSize(1, 8, 128)).rate) == 20
    with pytest.raises(LogError, match=r"is 1024.* samples per step of one job, but its identity says 2048"):
        job_series([log], JobSize(2, 8, 128))


def test_a_time_of_few_digits_contradicts_no_rate(tmp_path: Path) -> None:
    assert len(job_series([write_and_read(tmp_path, "0.log", plsc(0.1, 9500))], JobSize(1, 8, 128)).rate) == 20


def test_copies_of_the_jobs_rate_that_differ_are_refused(tmp_path: Path) -> None:
    similar = [write_and_read(tmp_path, f"{rank}.log", plsc(0.1078, 9500 + 50 * rank)) for rank in range(2)]
    assert job_series(similar, JobSize(1, 8, 128)).rate[0] == pytest.approx(9526)
    different = [similar[0], write_and_read(tmp_path, "different.log", plsc(0.0539, 19000))]
    with pytest.raises(LogError, match=r"copies of the job's rate differ: .* is 2\.00 times the smallest"):
        job_series(different, JobSize(1, 8, 128))


def test_ranks_that_print_the_very_same_rates_are_diagnosed(tmp_path: Path) -> None:
    line = "INFO:root:Epoch[0] Batch [{}]\tSpeed: {}.00 samples/sec\taccuracy=0.2\n"
    first, second = ("".join(line.format(step, 400 + step + more) for step in range(10, 100, 10)) for more in (0, 1))
    ranks = [write_and_read(tmp_path, f"{rank}.log", text) for rank, text in enumerate((first, first, second))]
    [diagnostic] = job_series(ranks[:2], JobSize(1, 2, 128)).diagnostics
    assert "2 ranks print exactly the same rate" in diagnostic.message
    assert job_series(ranks[1:], JobSize(1, 2, 128)).diagnostics == ()


def test_a_time_of_zero_is_no_rate(tmp_path: Path) -> None:
    line = "[Pass 0, train batch {}] loss 6.9, elapse {} sec\n"
    job = job_series(
        [write_and_read(tmp_path, "0.log", line.format(1, 0.25) + line.format(2, "0.0000"))], JobSize(1, 1, 128)
    )
    assert [rate == 512 for rate in job.rate] == [True, False]


def test_each_repeated_line_is_left_out_also_at_step_0(tmp_path: Path) -> None:
    line = "2016-08-19 10:58:12,137 Node[0] Epoch[0] Batch [{}]\tSpeed: {} samples/sec\tTrain-{}=0.1\n"
    printed = ((0, 90.5, "accuracy"), (0, 90.5, "top_k"), (50, 95.5, "accuracy"), (50, 95.5, "top_k"), (100, 99.5, "a"))
    log = write_and_read(tmp_path, "training.log", "".join(line.format(*values) for values in printed))
    assert list(job_series([log], JobSize(1, 1, 32)).rate) == [90.5, 95.5, 99.5]


def test_equal_lines_that_name_no_step_are_not_taken_for_repeated_ones(tmp_path: Path) -> None:
    line = "Train epoch time: 2500.0 ms, per step time: 250.0 ms\n"
    with pytest.raises(LogError, match="a line that names no step appears 3 times"):
        job_series([write_and_read(tmp_path, "0.log", 3 * line)], JobSize(1, 1, 32))


def test_ranks_without_a_name_count_each_in_every_log(tmp_path: Path) -> None:
    line = "2020-05-01 10:00:00,{} [step 10]\tmlm_loss=7.5\tthroughput={}K tks/s\tlr=0.0001 time=1.0\n"
    texts = [line.format(100, 17), line.format(200, 18), line.format(300, 20) + line.format(400, 20)]
    logs = [write_and_read(tmp_path, f"{index}.log", text) for index, text in enumerate(texts)]
    assert list(job_series(logs, JobSize(1, 4, 32)).rate) == [17000 + 18000 + 20000 + 20000]


def test_a_rank_that_is_named_is_not_the_one_that_is_not(tmp_path: Path) -> None:
    lines = [f"{node}Epoch[0] Batch [50]\tSpeed: 95.5 samples/sec\tTrain-accuracy=0.1\n" for node in ("Node[0] ", "")]
    log = write_and_read(tmp_path, "training.log", "".join(lines))
    assert list(job_series([log], JobSize(1, 2, 32)).rate) == [95.5 + 95.5]


def test_a_total_that_several_ranks_print_at_some_steps_is_a_copy(tmp_path: Path) -> None:
    total = "Total img/sec on 8 GPU(s): 863.2 +-11.4\n"
    logs = [write_and_read(tmp_path, f"{rank}.log", total) for rank in range(2)]
    assert job_series(logs, JobSize(1, 8, 32)).rule == Merge.COPIES
