"""What the kernel and other programs say of this machine's processors, GPUs and links."""

import os
from pathlib import Path

import pytest

from dlperf_study.machines.cluster import hardware
from dlperf_study.machines.cluster.hardware import (
    command_output,
    cpu_name,
    gpu_links,
    link_contradictions,
    named_link,
    network,
    usable_cpus,
    usable_gpus,
)
from tests.nvidia_smi import two_a100
from tests.shell_program import program

ALLOWED = len(os.sched_getaffinity(0))
_SMI = """\
if [ "$1" = -L ]; then
    printf 'GPU 0: First (UUID: GPU-aa)\\n'
    printf '  MIG 1g.5gb      Device  0: (UUID: MIG-cc)\\n  MIG 2g.10gb     Device  1: (UUID: MIG-dd)\\n'
    printf 'GPU 1: Second (UUID: GPU-bb)\\n'
else
    printf '0, GPU-aa, First, 550.1, 40 MiB\\n1, GPU-bb, Second, 550.1, 80 MiB\\n'
fi
"""


def test_a_command_says_what_it_prints():
    assert command_output("printf", " a\n b\n") == "a\n b"


@pytest.mark.parametrize("argv", [("/no/such/program",), ("sh", "-c", "echo no; exit 1"), ("sleep", "60")])
def test_one_that_fails_is_not_there_or_takes_too_long_says_nothing(argv, monkeypatch):
    monkeypatch.setattr(hardware, "COMMAND_SECONDS", 0.2)
    assert command_output(*argv) == ""


@pytest.mark.parametrize(
    ("quota", "cpus"),
    [
        ("max 100000\n", ALLOWED),
        ("100000 100000\n", 1),
        ("30000 100000\n", 1),
        ("90000000 100000\n", ALLOWED),
        (None, ALLOWED),
    ],
)
def test_a_containers_quota_limits_the_cpus_and_without_one_the_affinity_counts(tmp_path, quota, cpus):
    file = tmp_path / "cpu.max"
    if quota:
        file.write_text(quota)
    assert usable_cpus(file) == cpus


def test_the_cpu_has_the_name_its_maker_gives_it(tmp_path):
    file = tmp_path / "cpuinfo"
    file.write_text("processor\t: 0\nmodel name\t: A CPU @ 2.10GHz\n\nprocessor\t: 1\nmodel name\t: A CPU @ 2.10GHz\n")
    assert cpu_name(file) == "A CPU @ 2.10GHz"


@pytest.fixture
def smi(tmp_path: Path) -> str:
    """Return a command that answers as nvidia-smi does where there are two GPUs, the first in two MIG devices."""
    return program(tmp_path, _SMI, "nvidia-smi")


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


def files(folder: Path, **texts: str) -> None:
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / name).write_text(text)


@pytest.fixture
def classes(tmp_path: Path) -> Path:
    """The folder in which the kernel describes a card, one without a cable, a bridge, and two InfiniBand ports."""
    folder = tmp_path / "class"
    files(folder / "net" / "eth0", speed="25000\n")
    files(folder / "net" / "eth1", speed="-1\n")
    files(folder / "net" / "docker0", speed="10000\n")
    for card in ("eth0", "eth1"):
        (folder / "net" / card / "device").mkdir()
    ports = folder / "infiniband" / "mlx5_0" / "ports"
    files(ports / "1", state="4: ACTIVE\n", rate="200 Gb/sec (4X HDR)\n")
    files(ports / "2", state="1: DOWN\n", rate="10 Gb/sec (4X SDR)\n")
    return folder


def test_the_network_is_what_is_connected(classes, tmp_path):
    assert network(classes) == "eth0 25 Gbit/s; mlx5_0 port 1 200 Gbit/s"
    assert network(tmp_path / "nothing") == ""


def test_gpus_are_connected_as_nvidia_smi_says(tmp_path, monkeypatch):
    calls = two_a100(tmp_path, monkeypatch)
    gpus = usable_gpus(None)
    assert gpu_links(gpus[:1]) == gpu_links(gpus, "false") == []
    assert "topo" not in calls.read_text(), "nothing is asked about a single GPU"
    assert gpu_links(gpus) == ["NV12"]


@pytest.mark.parametrize(
    ("links", "name"),
    [
        ([], ""),
        (["NV12", "NV12"], "NVLink (NV12)"),
        (["SYS", "PHB"], "PCIe (PHB, SYS)"),
        (["NV4", "SYS"], "NVLink and PCIe (NV4, SYS)"),
    ],
)
def test_a_link_has_a_name(links, name):
    assert named_link(links) == name


@pytest.mark.parametrize(
    ("link", "nodes", "measured", "contradiction"),
    [
        (
            "100 Gbit/s InfiniBand",
            2,
            {"network": "eth0 10 Gbit/s; eth1 25 Gbit/s"},
            "its network is eth0 10 Gbit/s; eth1",
        ),
        ("25Gb/s", 2, {"network": "eth0 10 Gbit/s; eth1 25 Gbit/s"}, ""),
        ("100 Gbit/s InfiniBand", 2, {"network": ""}, ""),
        ("Ethernet", 2, {"network": "eth0 10 Gbit/s"}, ""),
        ("100 Gbit/s InfiniBand", 1, {"network": "eth0 10 Gbit/s"}, ""),
        (
            "NVLink",
            1,
            {"gpu_links": "PCIe (SYS)"},
            "its GPUs are connected by PCIe (SYS), but the cluster file has interconnect: ",
        ),
        ("nvlink 3", 1, {"gpu_links": "NVLink (NV12)"}, ""),
        ("NVLink", 1, {}, ""),
    ],
)
def test_a_link_is_contradicted_by_what_is_measured(link, nodes, measured, contradiction):
    text = "; ".join(link_contradictions(link, nodes, measured))
    assert text.startswith(contradiction)
    assert bool(text) == bool(contradiction)
