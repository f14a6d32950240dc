"""Logs whose facts contradict their metadata."""

import shutil
from pathlib import Path

import pytest

from tests.ingest.conftest import SAMPLES, Ingest, WriteLog, declare, reason


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (("batch_size: 64",), "states batch_size 64, but its identity says 128"),
        (("model : VGG16",), "states model VGG16, but its identity says r50"),
        (("use_fp16: True",), "states use_fp16 true, but its identity says precision fp32"),
    ],
)
def test_a_log_that_contradicts_its_metadata_is_refused(
    ingested: Ingest, write_log: WriteLog, head: tuple[str, ...], message: str
) -> None:
    write_log("1n1g/r50_b128_fp32_1.log", head=("batch_size: 128", "use_fp16: False"))
    write_log("1n1g/r50_b128_fp32_2.log", head=head)
    dataset = ingested()
    assert reason(dataset, 1) == ""
    assert message in reason(dataset, 2)


@pytest.mark.parametrize(
    ("sample", "data_source", "message"),
    [
        ("nvidia_dll_pytorch_resnet50_real.log", "files", "states data_backend dali-cpu, but its identity says"),
        ("nvidia_dll_pytorch_resnet50_real.log", "dali", ""),
        ("tf_cnn_benchmarks_real.log", "files", "states dataset imagenet (synthetic), but its identity says"),
        ("tf_cnn_benchmarks_real.log", "synthetic_device", ""),
        ("horovod_synthetic_real.log", "dali", "Horovod synthetic benchmark has synthetic data only, but"),
        ("paddle_resnet50_elapse_constructed.log", "dali", "states use_dali 0, but its identity says"),
        ("paddle_resnet50_elapse_constructed.log", "files", ""),
    ],
)
def test_a_log_with_different_data_than_declared_is_refused(
    folder: Path, ingested: Ingest, sample: str, data_source: str, message: str
) -> None:
    shutil.copy(SAMPLES / sample, folder / "run_1.log")
    declare(folder, batch_per_device=64, data_source=data_source)
    [refusal] = ingested().runs["reason"]
    assert message in refusal
    assert ("data" in refusal) == bool(message)


def test_uncommon_data_that_is_not_declared_is_diagnosed(ingested: Ingest, write_log: WriteLog) -> None:
    write_log("1n1g/r50_b128_fp32_1.log", head=("use_dali : 1",))
    write_log("1n1g/r50_b128_fp32_2.log", head=("use_dali : 0",))
    diagnostics = ingested().diagnostics
    diagnostics = diagnostics[diagnostics["message"].str.contains("its data_source is not stated")]
    assert diagnostics["subject"].tolist() == ["1n1g/r50_b128_fp32_1.log"]


@pytest.mark.parametrize(("name", "declared", "refused"), [("sample_ratio", 1.0, True), ("sample_ratio", 0.1, False)])
def test_declared_metadata_are_compared_with_the_facts_of_the_log(
    folder: Path, ingested: Ingest, name: str, declared: float, refused: bool
) -> None:
    shutil.copy(SAMPLES / "plsc_2_2_complete_real.log.gz", folder / "run_1.log.gz")
    declare(folder, devices_per_node=8, precision="amp_fp16", model="some", **{name: declared})
    expected = f"run_1.log.gz: states {name} 0.1, but its identity says {declared}"
    assert reason(ingested(), 1, devices_per_node=8) == refused * expected
