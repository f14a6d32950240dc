import pytest

from dlperf_study.logs.inferred_metadata import are_one_run, parse_name, parse_name_below


@pytest.mark.parametrize(
    ("path", "nodes", "devices", "model", "batch", "precision", "repetition", "printer"),
    [
        ("1n1g/r50_b128_fp32_1.log", 1, 1, "r50", 128, "fp32", 1, ""),
        ("10n8g/r50_b128_fp32_12.log.gz", 10, 8, "r50", 128, "fp32", 12, ""),
        ("1n4g/bert_base_b2_b96_amp_fp16_3.txt", 1, 4, "bert_base_b2", 96, "amp_fp16", 3, ""),
        ("paddle/2n8g/node1/r50_b128_fp16_2.log", 2, 8, "r50", 128, "fp16", 2, "node1"),
        ("2n8g/r50_b128_fp16_2/workerlog.3", 2, 8, "r50", 128, "fp16", 2, "workerlog.3"),
        ("2n8g/r50_b128_fp16_2_rank3.log", 2, 8, "r50", 128, "fp16", 2, "_rank3"),
        ("2n8g/10.0.0.17/r50_b128_fp16_2.log", 2, 8, "r50", 128, "fp16", 2, "10.0.0.17"),
        ("archive.zip/1n8g/r50_b128_fp32_1.log", 1, 8, "r50", 128, "fp32", 1, ""),
        ("1n8g.zip/r50_b128_fp32_1.log", 1, 8, "r50", 128, "fp32", 1, ""),
    ],
)
def test_metadata_are_inferred_from_folders_and_files(
    path, nodes, devices, model, batch, precision, repetition, printer
):
    metadata = parse_name(path.split("/"))
    assert metadata
    assert (metadata.nodes, metadata.devices_per_node, metadata.model) == (nodes, devices, model)
    assert (metadata.batch_per_device, metadata.precision, metadata.repetition) == (batch, precision, repetition)
    assert metadata.printer == printer


@pytest.mark.parametrize(
    "path",
    [
        "r50_b128_fp32_1.log",
        "1n1g/r50_fp32_1.log",
        "0n8g/r50_b128_fp32_1.log",
        "1n8g/r50_b0_fp32_1.log",
        "r50_b128_fp32_1/1n8g/out.log",
        "1n8gpu/r50_b128_fp32_1.log",
        "99999999999999999999n8g/r50_b128_fp32_1.log",
        "1n8g/r50_b99999999999999999999_fp32_1.log",
        "1n8g/r50_b128_fp32_99999999999999999999.log",
    ],
)
def test_nothing_is_inferred_from_other_names(path):
    assert parse_name(path.split("/")) is None


@pytest.mark.parametrize(
    ("path", "repetition", "printer"),
    [
        ("run_2.log", 2, ""),
        ("3/stdout", 3, "stdout"),
        ("3/rank0.log", 3, "rank0"),
        ("workerlog.1", None, "workerlog.1"),
        ("train.log", None, ""),
        ("run_20201125123456.log", 20201125123456, ""),
        ("run_99999999999999999999.log", None, ""),
    ],
)
def test_below_a_configuration_the_first_name_ends_in_the_repetition(path, repetition, printer):
    assert parse_name_below(path.split("/")) == (repetition, printer)


def test_logs_are_one_run_only_if_each_names_a_different_rank_or_node():
    assert are_one_run(["node0", "node1"], devices=16)
    assert not are_one_run(["node0", "node0"], devices=16)
    assert not are_one_run(["", "node1"], devices=16)
    assert not are_one_run(["again", "old"], devices=16)
    assert not are_one_run(["rank0", "rank1", "rank2"], devices=2)
    assert not are_one_run(["weekly/run_1", "weekly/run_2"], devices=16)
    assert not are_one_run(["a/Trial-1", "a/Trial-2"], devices=16)
    assert are_one_run(["run_1/0", "run_1/1"], devices=16)
