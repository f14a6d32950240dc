"""Which GPUs a process may use."""

import pytest

from dlperf_study.machines.cluster.hardware import usable_gpus


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
def test_gpus_are_those_cuda_may_see(smi, allowed, names):
    assert [gpu.name for gpu in usable_gpus(allowed, smi)] == names


def test_a_gpu_has_its_driver_and_memory(smi):
    [gpu] = usable_gpus("1", smi)
    assert (gpu.driver, gpu.memory) == ("550.1", "80 MiB")


@pytest.mark.parametrize("command", ["/nowhere/nvidia-smi", "false"])
def test_without_a_driver_there_is_no_gpu(command):
    assert usable_gpus(None, command) == []
