"""Which GPUs a process may use, and which of them a run takes."""

import pytest

from dlperf_study.errors import RunError
from dlperf_study.study.gpus import first_devices, usable_gpus


@pytest.mark.parametrize(
    ("allowed", "names"),
    [
        (None, ["First", "Second"]),
        ("", []),
        ("1", ["Second"]),
        ("1,0", ["Second", "First"]),
        ("GPU-b", ["Second"]),
        ("0,-1,1", ["First"]),
        ("0,7,1", ["First"]),
        ("MIG-dd", ["First MIG 2g.10gb"]),
        ("NoDevFiles", []),
    ],
)
def test_gpus_are_those_cuda_may_see(smi: str, allowed: str | None, names: list[str]) -> None:
    assert [gpu.name for gpu in usable_gpus(allowed, smi)] == names


def test_a_gpu_has_its_driver_and_memory(smi: str) -> None:
    [gpu] = usable_gpus("1", smi)
    assert (gpu.driver, gpu.memory) == ("550.1", "80 MiB")


@pytest.mark.parametrize(
    ("allowed", "wanted", "shown"),
    [
        (None, 2, "0,1"),
        ("2,3", 2, "2,3"),
        ("4,5,6", 2, "4,5"),
        (" 7, 6", 2, "7,6"),
        ("GPU-5d5b,GPU-0a1b", 1, "GPU-5d5b"),
        ("GPU-5d5b,GPU-0a1b", 2, "GPU-5d5b,GPU-0a1b"),
        ("MIG-c6d4,MIG-cba6", 1, "MIG-c6d4"),
        ("MIG-GPU-5d5b/7/0", 1, "MIG-GPU-5d5b/7/0"),
        ("2,3", 0, ""),
        ("", 0, ""),
        (None, 0, ""),
    ],
)
def test_a_run_takes_the_first_of_those_it_is_allowed(allowed: str | None, wanted: int, shown: str) -> None:
    assert first_devices(allowed, wanted) == shown


@pytest.mark.parametrize(
    ("allowed", "wanted", "words"),
    [
        ("4", 2, "CUDA_VISIBLE_DEVICES=4 allows 1 GPU here, but the run needs 2"),
        ("", 1, "CUDA_VISIBLE_DEVICES= allows 0 GPUs here, but the run needs 1"),
        ("-1", 1, "CUDA_VISIBLE_DEVICES=-1 allows 0 GPUs here, but the run needs 1"),
        ("0,-1,1", 2, "CUDA_VISIBLE_DEVICES=0,-1,1 allows 1 GPU here, but the run needs 2"),
        ("MIG-c6d4,MIG-cba6", 2, "CUDA_VISIBLE_DEVICES=MIG-c6d4,MIG-cba6: CUDA shows a process one MIG device only"),
    ],
)
def test_a_run_that_needs_more_than_it_is_allowed_is_told_so(allowed: str, wanted: int, words: str) -> None:
    with pytest.raises(RunError, match=f"^{words}"):
        first_devices(allowed, wanted)
