"""The numbers of each sample, as a person reads them."""

from pathlib import Path

import pytest

from dlperf_study.errors import LogError
from dlperf_study.logs.log_reader import read_log
from dlperf_study.logs.parsed_log import ParsedLog

SAMPLES = Path(__file__).parent / "samples"

#: sample: metric, how many, the first (step, value), the last.
EXPECTED = {
    "elasticdl_real": ("task_seconds", 7, (-1, 1033.2), (-1, 226.265)),
    "gluonnlp_bert_4ranks_constructed": ("throughput", 40, (1, 17100.0), (10, 17300.0)),
    "gluonnlp_bert_one_process_real": ("throughput", 4, (249, 122000.0), (999, 127000.0)),
    "horovod_synthetic_real": ("throughput", 10, (0, 108.3), (9, 108.3)),
    "hugectr_real": ("step_seconds", 3, (100, 0.00315066), (1100, 0.00222373)),
    "insightface_partial_fc_real": ("throughput", 12, (460, 1659.38), (680, 1657.61)),
    "mindspore_real": ("step_seconds", 7, (422, 0.312811), (39, 0.000597)),
    "mxnet_speedometer_interval_real": ("throughput", 18, (740, 1102.56), (1080, 1099.9)),
    "mxnet_speedometer_two_programs_real": ("throughput", 11, (50, 590.59), (100, 92.71)),
    "nvidia_dll_pytorch_resnet50_real": ("throughput", 12, (1, 267.44), (12, 10393.54)),
    "nvidia_dll_tensorflow_bert_real": ("throughput", 4, (16, 145.221), (42, 142.487)),
    "nvidia_dll_tensorflow_resnet50_constructed": ("throughput", 24, (0, 9.87), (23, None)),
    "nvidia_dll_total_ips_real": ("throughput", 11, (120, 2879.142978189404), (130, 2901.9657139768383)),
    "oneflow_insightface_constructed": ("throughput", 24, (1, 12.2), (24, 243.802)),
    "oneflow_resnet50_real": ("throughput", 17, (100, 2897.681), (300, 2510.358)),
    "paddle_bert_constructed": ("steps_per_second", 14, (1, 0.31), (14, None)),
    "paddle_bert_excerpts_real": ("steps_per_second", 4, (2, 3.092194), (8720, 5.793753)),
    "paddle_fluid_benchmark_constructed": ("overall_throughput", 1, (20, 13.09576), (20, 13.09576)),
    "paddle_fluid_benchmark_real": ("overall_throughput", 1, (10, 1.11707), (10, 1.11707)),
    "paddle_resnet50_trainbatch_real": ("step_seconds", 4, (72, 0.92), (144, 0.89)),
    "paddle_resnet50_elapse_constructed": ("step_seconds", 30, (0, 5.1531), (29, None)),
    "paddle_resnet50_ips_real": ("throughput", 4, (0, 94.25099), (30, 987.52497)),
    "paddle_resnet50_timestamped_constructed": ("step_seconds", 30, (0, 5.1531), (29, None)),
    "paddle_vgg16_fluid_constructed": ("throughput", 40, (1, 13.08), (40, 12.72)),
    "paddle_vgg16_fluid_real": ("overall_throughput", 5, (-1, 240.092875), (-1, 240.154561)),
    "paddle_vgg16_v2_constructed": ("step_seconds", 20, (0, 7.53272), (19, None)),
    "paddleclas_real": ("step_seconds", 11, (28060, 0.436), (28160, 0.426)),
    "plsc_2020_8ranks_constructed": ("throughput", 64, (0, 1402.38), (70, None)),
    "plsc_2020_constructed": ("throughput", 16, (0, 182.3), (150, 397.09)),
    "plsc_2_2_complete_real": ("throughput", 1264, (100, 3617.34), (126400, 7961.39)),
    "plsc_2_2_real": ("throughput", 32, (100, 2848.87), (3200, 9716.32)),
    "plsc_2_4_constructed": ("throughput", 20, (10, 9562.79486), (200, None)),
    "pytorch_imagenet_real": ("step_seconds", 13, (0, 12.054), (15, 0.508)),
    "tensorpack_constructed": ("throughput", 7, (50, 711.3), (350, 2857.4)),
    "tensorpack_real": ("throughput", 1, (3500, 4.602), (3500, 4.602)),
    "tf2_timehistory_real": ("throughput", 6, (100, 110.12), (600, 321.57)),
    "tf_cnn_benchmarks_horovod_real": ("running_throughput", 11, (1, 205.3), (100, 204.8)),
    "tf_cnn_benchmarks_real": ("overall_throughput", 1, (100, 124.77), (100, 124.77)),
    "tf_cnn_benchmarks_servers_real": ("overall_throughput", 1, (100, 48.05), (100, 48.05)),
    "dllogger_constructed": ("throughput", 3, (0, 410.5), (2, 2880.75)),
    "mllog_constructed": ("train_throughput", 2, (400, 21500.5), (800, 21611.25)),
    "mllog_epochs_real": ("throughput", 2, (31, 35759.37477602493), (32, 35794.2955538236)),
}
REFUSED = {
    "two_formats_real": "oneflow_bert, oneflow_resnet50",
    "no_training_real": "no line of training",
}


def sample(name: str) -> Path:
    return next(SAMPLES.glob(f"{name}.log*"))


def test_every_sample_has_expected_numbers() -> None:
    names = {path.name.partition(".")[0] for path in SAMPLES.glob("*.log*")}
    assert names == set(EXPECTED) | set(REFUSED)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_numbers_are_those_that_are_printed(name: str) -> None:
    metric, count, first, last = EXPECTED[name]
    rows = read_log(sample(name)).series(metric)
    assert len(rows) == count
    assert (rows.step[0], rows.values[metric][0]) == (first[0], pytest.approx(first[1], rel=1e-15))
    assert rows.step[-1] == last[0]
    assert last[1] is None or rows.values[metric][-1] == pytest.approx(last[1], rel=1e-15)


@pytest.mark.parametrize("name", REFUSED)
def test_a_log_of_no_format_or_of_several_is_refused(name: str) -> None:
    with pytest.raises(LogError, match=REFUSED[name]):
        read_log(sample(name))


@pytest.mark.parametrize("where", ["after", "inside"])
def test_a_second_program_in_a_short_log_is_detected_wherever_it_is(tmp_path: Path, where: str) -> None:
    lines = [f"[Pass 0, train batch {step}] \tloss 1.0, lr 0.1, elapse 0.36{step % 9} sec\n" for step in range(300)]
    second_log = sample("tf_cnn_benchmarks_real").read_text()
    lines.insert(len(lines) if where == "after" else 150, second_log)
    (tmp_path / "log").write_text("".join(lines))
    with pytest.raises(LogError, match=r"several formats \(paddle_resnet50, tf_cnn_benchmarks\)"):
        read_log(tmp_path / "log")


def test_a_log_of_several_formats_can_be_read_by_name() -> None:
    assert list(read_log(sample("two_formats_real"), "oneflow_bert").series("throughput").step) == [19, 119]


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("plsc_2_2_complete_real", {"world_size": "8", "global_batch": "1024", "batch_per_device": "128"}),
        ("horovod_synthetic_real", {"world_size": "4", "batch_per_device": "32", "model": "resnet50"}),
        ("nvidia_dll_pytorch_resnet50_real", {"world_size": "16", "batch_size": "128", "amp": "False"}),
        ("tf_cnn_benchmarks_servers_real", {"mode": "forward-only", "global_batch": "32"}),
        ("paddle_vgg16_fluid_constructed", {"world_size": "20", "batch_per_device": "128", "rank": "0"}),
        ("hugectr_real", {"nodes": "1", "devices_per_node": "1", "steps_planned": "1200"}),
        ("dllogger_constructed", {"world_size": "8", "batch_size": "128"}),
        ("mllog_constructed", {"global_batch_size": "3264", "submission_benchmark": "resnet"}),
    ],
)
def test_a_log_states_facts_about_its_run(name: str, facts: dict[str, str]) -> None:
    assert facts.items() <= read_log(sample(name)).facts.items()


def test_facts_that_contradict_each_other_are_not_used() -> None:
    log = read_log(sample("two_formats_real"), "oneflow_bert")
    assert "batch_per_device" not in log.facts
    assert any("batch_per_device as 128, 24" in diagnostic.message for diagnostic in log.diagnostics)


def test_validation_is_kept_apart() -> None:
    log = read_log(sample("oneflow_resnet50_real"))
    assert list(log.series("throughput", "validation").values["throughput"]) == [2173.505, 2896.833]
    assert not set(log.series("throughput", "validation").line) & set(log.series("throughput").line)


def test_other_numbers_of_a_line_are_read_too() -> None:
    rows = read_log(sample("paddle_resnet50_ips_real")).records
    assert list(rows.values["loss"]) == [53.09683, 21.68535, 16.28334, 11.11287]
    assert list(rows.values["reader_seconds"]) == [0.00002, 0.00069, 0.00103, 0.00064]


def test_the_time_of_a_line_is_read() -> None:
    rows = read_log(sample("paddle_resnet50_timestamped_constructed")).records
    assert rows.time_seconds[0] == pytest.approx(1598350277.498)
    assert rows.time_seconds[-1] - rows.time_seconds[19] == pytest.approx(
        rows.values["step_seconds"][20:].sum(), abs=0.01
    )
    assert read_log(sample("oneflow_resnet50_real")).records.time_seconds[1] == pytest.approx(1599761677.6515865)


def test_a_number_after_a_step_belongs_to_it() -> None:
    rows = read_log(sample("tensorpack_constructed")).series("throughput")
    assert list(zip(rows.epoch, rows.step, strict=True))[:2] == [(1, 50), (2, 100)]


def test_the_rate_that_is_used_is_the_best_of_the_format() -> None:
    def rate(name: str) -> str:
        log: ParsedLog = read_log(sample(name))
        return log.rate_metric

    assert rate("paddle_resnet50_ips_real") == "step_seconds"
    assert rate("tf_cnn_benchmarks_real") == "overall_throughput"
    assert rate("elasticdl_real") == ""
