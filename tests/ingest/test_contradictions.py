"""What logs say of themselves, beside what is stated of them."""

import shutil
from pathlib import Path

import pytest

from tests.ingest.conftest import SAMPLES, Ingest, WriteLog, reason, state


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (("batch_size: 64",), "states batch_size 64, but according to its identity it is 128"),
        (("model : VGG16",), "states model VGG16, but its identity says r50"),
        (("use_fp16: True",), "states use_fp16 true, but its identity says precision fp32"),
    ],
)
def test_a_log_that_says_something_else_of_itself_is_refused(
    ingested: Ingest, write_log: WriteLog, head: tuple[str, ...], said: str
) -> None:
    write_log("1n1g/r50_b128_fp32_1.log", head=("batch_size: 128", "use_fp16: False"))
    write_log("1n1g/r50_b128_fp32_2.log", head=head)
    dataset = ingested()
    assert reason(dataset, 1) == ""
    assert said in reason(dataset, 2)


@pytest.mark.parametrize(
    ("sample", "stated", "said"),
    [
        ("nvidia_dll_pytorch_resnet50_real.log", "files", "it states data_backend dali-cpu, but its identity says"),
        ("nvidia_dll_pytorch_resnet50_real.log", "dali", ""),
        ("tf_cnn_benchmarks_real.log", "files", "it states dataset imagenet (synthetic), but its identity says"),
        ("tf_cnn_benchmarks_real.log", "synthetic_device", ""),
        ("horovod_synthetic_real.log", "dali", "Horovod synthetic benchmark has synthetic data only, but"),
        ("paddle_resnet50_elapse_constructed.log", "dali", "it states use_dali 0, but its identity says"),
        ("paddle_resnet50_elapse_constructed.log", "files", ""),
    ],
)
def test_a_log_with_other_data_than_stated_is_refused(
    folder: Path, ingested: Ingest, sample: str, stated: str, said: str
) -> None:
    shutil.copy(SAMPLES / sample, folder / "run_1.log")
    state(folder, batch_per_device=64, data_source=stated)
    [seen] = ingested().runs["reason"]
    assert said in seen
    assert ("data" in seen) == bool(said)


def test_uncommon_data_that_nobody_states_is_diagnosed(ingested: Ingest, write_log: WriteLog) -> None:
    write_log("1n1g/r50_b128_fp32_1.log", head=("use_dali : 1",))
    write_log("1n1g/r50_b128_fp32_2.log", head=("use_dali : 0",))
    diagnostics = ingested().diagnostics
    diagnostics = diagnostics[diagnostics["message"].str.contains("its data_source is not stated")]
    assert diagnostics["subject"].tolist() == ["1n1g/r50_b128_fp32_1.log"]


@pytest.mark.parametrize(("name", "stated", "refused"), [("sample_ratio", 1.0, True), ("sample_ratio", 0.1, False)])
def test_what_is_stated_beside_a_log_is_compared_with_what_it_says(
    folder: Path, ingested: Ingest, name: str, stated: float, refused: bool
) -> None:
    shutil.copy(SAMPLES / "plsc_2_2_complete_real.log.gz", folder / "run_1.log.gz")
    state(folder, devices_per_node=8, precision="amp_fp16", model="some", **{name: stated})
    said = reason(ingested(), 1, devices_per_node=8)
    assert said == refused * f"run_1.log.gz: it states {name} 0.1, but its identity says {stated}"
