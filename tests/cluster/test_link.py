"""What connects devices, as the kernel and nvidia-smi say, and whether a cluster file may call it so."""

from pathlib import Path

import pytest

from dlperf_study.machines.cluster.hardware import gpu_links, link_contradictions, named_link, network, usable_gpus
from tests.nvidia_smi import two_a100


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
            "its GPUs are connected by PCIe (SYS), but the cluster file says link: ",
        ),
        ("nvlink 3", 1, {"gpu_links": "NVLink (NV12)"}, ""),
        ("NVLink", 1, {}, ""),
    ],
)
def test_a_link_is_contradicted_by_what_is_measured(link, nodes, measured, contradiction):
    text = "; ".join(link_contradictions(link, nodes, measured))
    assert text.startswith(contradiction)
    assert bool(text) == bool(contradiction)
