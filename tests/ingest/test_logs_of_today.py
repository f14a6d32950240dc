"""Samples of the programs of today: the job's rate in samples/s as their authors, or their numbers, state it."""

from pathlib import Path

import numpy as np
import pytest

from dlperf_study.errors import LogError
from dlperf_study.ingest.identity import Extras
from dlperf_study.ingest.rates import Rates, rates_of
from dlperf_study.logs.log_reader import read_log
from dlperf_study.logs.rank_checks import JobSize
from dlperf_study.logs.rank_merge import job_series

MEAN, EPOCH_MEAN = ", a mean since the start", ", a mean since each epoch began"
SAMPLES = Path(__file__).parents[1] / "logs" / "samples" / "today"
#: Sample: nodes, devices per node, batch per device; samples/s; its relative error by rounding; what is printed.
RATES = {
    # 2.7330 samples/s of the job, which is 16 times that of a device.
    "composer_real.log": ((2, 8, 64), 2.733, 1e-9, "samples/s of the job"),
    "composer_two_batches_constructed.log": ((1, 8, 8), 65.0, 0.01, "samples/s of the job"),
    # The whole log: RunningAvgSamplesPerSec=171.74, last CurrSamplesPerSec=171.60.
    "deepspeed_real.log": ((1, 16, 8), 171.6, 0.005, "samples/s of the job"),
    "deepspeed_old_constructed.log": ((1, 1, 8), 41.25, 1e-9, "samples/s of the job" + MEAN),
    "detectron2_real.log": ((1, 1, 2), 2 / 1.1952, 1e-9, "s of the job" + MEAN),
    # "Overall training speed: 298 iterations in 0:06:16 (1.2650 s / it)"
    "detectron2_metrics_real.json": ((1, 1, 2), 2 / 1.265, 0.02, "s of the job"),
    # 285 to 319 words/s, 16384 words and 8 sequences per update.
    "fairseq_real.log": ((1, 1, 8), 8 * 305 / 16384, 0.03, "samples/s of the job"),
    "fairseq_text_constructed.log": ((1, 2, 8), 16.0, 1e-9, "tokens/s of the job"),
    # 100 steps of 24 samples in 425.43 s.
    "huggingface_trainer_real.log": (
        (2, 12, 1),
        100 * 24 / 425.43,
        1e-3,
        "samples/s of the job, a mean since the start",
    ),
    "huggingface_trainer_state_constructed.json": (
        (1, 1, 8),
        32.5,
        1e-9,
        "samples/s of the job, a mean since the start",
    ),
    # 1719 steps of 32 samples in 2 s, printed as 1 ms per step.
    "keras_fit_real.log": ((1, 1, 32), 32 / 0.001, 1e-9, "s of the job" + EPOCH_MEAN),
    "keras_fit_keras3_constructed.log": ((1, 1, 32), 32 / 0.005, 1e-9, "s of the job" + EPOCH_MEAN),
    "keras_fit_verbose_2_constructed.log": ((1, 1, 32), 32 / 0.006, 1e-9, "s of the job" + EPOCH_MEAN),
    "lightning_real.log": ((1, 2, 4), 8 / 4.47, 1e-9, "steps/s of one process" + EPOCH_MEAN),
    "llm_c_constructed.log": ((1, 8, 64), 512 / 0.61137, 0.01, "s of the job"),
    # 24 × 2048 tokens / 5.667 s on each of 4 devices.
    "maxtext_real.log": ((1, 4, 24), 24 * 4 / 5.667, 1e-3, "tokens/s of each device"),
    # "16 GPUs 18B GBS 4: 1.381 s/iter"
    "megatron_lm_real.log": ((1, 1, 4), 4 / 1.381, 0.02, "samples/s of the job"),
    "mmengine_real.log": ((1, 2, 128), 256 / 0.2, 0.02, "s of the job"),
    "mmengine_scalars_constructed.json": ((1, 2, 4), 8 / 0.375, 1e-9, "s of the job"),
    # "step_avg 142.01 ms" of the whole run, 512 sequences of 1024 tokens.
    "modded_nanogpt_real.log": ((1, 8, 64), 512 / 0.142, 0.05, "s of the job"),
    # Epochs of 507 s: 2306 images per second of the job, 288.3 printed.
    "mllog_ssd_real.log": ((1, 8, 32), 2306, 0.01, "a rate of no stated unit of each device"),
    # "about 560 ms per iteration", 12 × 5 × 8 sequences.
    "nanogpt_real.log": ((1, 8, 60), 480 / 0.5628, 2e-3, "s of the job"),
    "nanogpt_mfu_real.log": ((1, 1, 64), 64 / 0.894, 0.01, "s of the job"),
    "nemo_real.log": ((1, 1, 1), 1 / 0.0317, 0.02, "samples/s of the job"),
    # ips × batch_cost is 2, the batch of a device.
    "paddledetection_real.log": ((1, 1, 2), 2 / 0.56, 0.05, "s of the job"),
    # 11.327 steps/s × 8, against 9.061 printed.
    "paddlenlp_real.log": ((1, 1, 8), 90.6, 0.06, "steps/s of the job"),
    "paddlenlp_tokens_real.log": ((1, 1, 1), 2 / (1.1518 + 0.2556), 1e-3, "steps/s of the job"),
    "paddleclas_2_6_constructed.log": ((1, 8, 256), 2048 / 0.785, 0.01, "s of one process"),
    # Written as 350 + sin(step).
    "tensorboard_constructed.out.tfevents.1795407924": ((1, 1, 128), 350.0, 0.002, "samples/s of the job"),
    "wandb_constructed.wandb": ((1, 1, 128), 350.0, 0.002, "samples/s of the job"),
    "timm_constructed.log": ((1, 8, 128), 4000.0, 1e-9, "samples/s of the job" + EPOCH_MEAN),
    "timm_real.log": ((1, 1, 128), 69.89, 1e-9, "samples/s of the job" + EPOCH_MEAN),
    # "steady 6,633 tps per rank", 4096 tokens per sample on 24 ranks.
    "torchtitan_real.log": ((2, 12, 1), 24 * 6633 / 4096, 0.01, "tokens/s of each device"),
    # Batch / time, and not the 13.6 img/s of one process without its data.
    "torchvision_references_real.log": ((1, 8, 32), 8 * 32 / 2.67, 0.03, "s of one process"),
    # "Total time: 0:00:05 (0.9880 s / it)", then 0.5778, of six steps each.
    "torchvision_references_detection_real.log": ((1, 1, 1), 2 / (0.9880 + 0.5778), 1e-3, "s of one process"),
    # 1000 images per epoch; 52.9 s of the last epochs of the whole file, 36 s at its start.
    "ultralytics_results_real.csv": ((1, 1, 16), 1000 / 36.0, 0.1, "s of the job"),
    "ultralytics_constructed.log": ((1, 2, 8), 16 * 2.5, 1e-9, "steps/s of the job" + EPOCH_MEAN),
}
TOKENS = {
    "fairseq_text_constructed.log": 512,
    "mllog_ssd_real.log": 1,
    "maxtext_real.log": 2048,
    "torchtitan_real.log": 4096,
}
REFUSED = {
    "lightning_metrics_real.csv": "metrics.csv of Lightning has no time",
    "llm_c_real.log": "main.log of llm.c has no time",
    "first_steps_of_maxtext_real.log": "has only steps before 5",
    "mmengine_two_runs_real.log": "steps start over at line 4",
    "torchtitan_two_runs_real.log": "copies of the rate of each device differ",
}


def job_rates(name: str, devices: tuple[int, int, int] = (4, 8, 1), samples_per_epoch: int | None = 1000) -> Rates:
    logs, job = [read_log(SAMPLES / name)], JobSize(*devices)
    extras = Extras(tokens_per_sample=TOKENS.get(name), samples_per_epoch=samples_per_epoch)
    return rates_of(logs, job_series(logs, job), extras, job.batch_per_device * job.world_size)


@pytest.mark.parametrize("name", RATES)
def test_the_rate_of_the_job_is_as_stated(name: str) -> None:
    devices, expected, tolerance, printed = RATES[name]
    rates = job_rates(name, devices)
    assert rates.steady.window.wall_rate == pytest.approx(expected, rel=tolerance)
    assert rates.printed == printed


@pytest.mark.parametrize("name", REFUSED)
def test_a_log_without_a_true_rate_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(LogError, match=REFUSED[name]):
        job_rates(name)


@pytest.mark.parametrize("name", ["keras_fit_real.log", "lightning_real.log", "ultralytics_constructed.log"])
@pytest.mark.parametrize("prefix", ["0: ", "[rank0]:", "[1,0]<stdout>:", "(train, pid=4112) ", "\x1b[36m"])
def test_what_launchers_and_terminals_add_changes_no_rate(name: str, prefix: str, tmp_path: Path) -> None:
    """Bars are rewritten after a carriage return, with colours."""
    lines = (SAMPLES / name).read_text().splitlines()
    (tmp_path / "log").write_text("".join(f"{prefix}{line}\x1b[0m\r" for line in lines) + "\n", newline="")
    job = JobSize(*RATES[name][0])
    expected = job_series([read_log(SAMPLES / name)], job)
    assert job_series([read_log(tmp_path / "log")], job).rate.tolist() == expected.rate.tolist()


def test_what_a_log_does_not_state_is_asked_for() -> None:
    with pytest.raises(LogError, match="prints epochs/s and not samples/s; state samples_per_epoch"):
        job_rates("ultralytics_results_real.csv", (1, 1, 16), samples_per_epoch=None)


def test_tokens_whose_number_in_a_sample_is_unknown_are_counted_as_tokens() -> None:
    rates = job_rates("torchtitan_two_ranks_constructed.log", (1, 4, 1))
    assert (rates.unit, rates.rate.tolist()) == ("tokens/s", [4 * 1034697, 4 * 34880])
    # A batch is in samples.
    assert rates.wall is None


def test_a_batch_that_a_line_states_contradicts_a_different_one() -> None:
    with pytest.raises(LogError, match="its rate × seconds per step is 4 samples per step of one job"):
        job_rates("megatron_lm_real.log", (1, 8, 4))


def test_a_running_mean_of_each_epoch_counts_for_the_last_long_one() -> None:
    window = job_rates("timm_constructed.log", (1, 8, 128)).steady.window
    assert np.flatnonzero(window.kept).tolist() == [1]
    assert window.reasons[0].endswith("epochs with these rates: 3200, 4000, 512")


def test_copies_of_the_rate_of_a_device_are_never_summed() -> None:
    """Two of four ranks print; the first step has a rate with two commas."""
    log, job = read_log(SAMPLES / "torchtitan_two_ranks_constructed.log"), JobSize(1, 4, 1)
    assert job_series([log], job).rate.tolist() == [4 * 1034697, 4 * 34880]


def test_ranks_that_all_print_the_rate_of_the_job_are_not_summed(tmp_path: Path) -> None:
    lines = (SAMPLES / "huggingface_trainer_real.log").read_text().splitlines()
    (tmp_path / "log").write_text("".join(f"{line}\n" * 24 for line in lines))
    assert job_series([read_log(tmp_path / "log")], JobSize(2, 12, 1)).rate.tolist() == [5.641]


def test_the_tokens_of_one_rank_in_the_last_line_are_no_rate_of_the_job(tmp_path: Path) -> None:
    """A training that did not end has the tokens of the job so far: the last line counts."""
    text = (SAMPLES / "huggingface_trainer_real.log").read_text()
    assert "'train_tokens_per_second': 1925.584" in text
    (tmp_path / "log").write_text(text[: text.index("{'train_runtime'")])
    series = job_series([read_log(tmp_path / "log")], JobSize(2, 12, 1))
    assert (series.rate.tolist(), series.unit) == ([50512.468], "tokens/s")
