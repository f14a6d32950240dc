"""What a node says of itself."""

import socket
from collections.abc import Callable

import psutil
import pytest

from dlperf_study.core.errors import RunError
from dlperf_study.machines.node_agent import node_hardware as node
from dlperf_study.machines.node_agent.node_hardware import (
    cpu_clock,
    first_devices,
    free_ports,
    hardware,
    largest_cache,
    own_address,
)


def test_the_hardware_is_flat_and_of_this_machine():
    facts = hardware()
    assert facts["host"] == socket.gethostname()
    assert facts["memory_bytes"] == psutil.virtual_memory().total
    assert all(not isinstance(value, dict | list) for value in facts.values())


def test_the_clock_and_the_largest_cache_are_those_of_the_kernel(tmp_path):
    xeon = "model name\t: Xeon\ncpu MHz\t\t: 2101.000\ncache size\t: 20480 KB\n\ncpu MHz\t\t: 1200.0\n"
    assert cpu_clock(xeon) == 2101.0
    assert cpu_clock("processor\t: 0\nBogoMIPS\t: 243.75\n") is None
    assert largest_cache(tmp_path) is None
    for index, size in enumerate(("32K", "1024K", "20480K", "")):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        (folder / "size").write_text(f"{size}\n")
    assert largest_cache(tmp_path) == 20480 * 1024


def test_a_port_that_is_taken_is_not_free():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert free_ports([port]) == []
    assert free_ports([port]) == [port]


Interfaces = Callable[..., None]


@pytest.fixture
def interfaces(monkeypatch: pytest.MonkeyPatch) -> Interfaces:
    """Give this machine other network interfaces, and a name that stands for no address of theirs."""

    def give(name_stands_for: str = "127.0.1.1", **addresses: str) -> None:
        monkeypatch.setattr(node, "_addresses", lambda: {"lo": "127.0.0.1", **addresses})
        monkeypatch.setattr(node, "_named_addresses", lambda: [name_stands_for])

    return give


def test_the_only_address_is_the_one_and_of_several_the_one_ssh_came_by(interfaces):
    interfaces(eth0="10.0.0.1")
    assert own_address("", {}) == ("10.0.0.1", "eth0")
    interfaces("10.1.0.1", eth0="10.0.0.1", ib0="10.1.0.1")
    assert own_address("", {"SSH_CONNECTION": "10.0.0.9 5555 10.0.0.1 22"}) == ("10.0.0.1", "eth0")
    assert own_address("", {}) == ("10.1.0.1", "ib0")
    assert own_address("eth0", {}) == ("10.0.0.1", "eth0")


def test_a_choice_is_left_to_the_cluster_file(interfaces, refused):
    interfaces(eth0="10.0.0.1", ib0="10.1.0.1")
    with refused(RunError):
        own_address("", {})
    with refused(RunError):
        own_address("ib1", {})


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
def test_a_run_takes_the_first_of_those_it_is_allowed(allowed, wanted, shown):
    assert first_devices(allowed, wanted) == shown


@pytest.mark.parametrize(("allowed", "wanted"), [("4", 2), ("", 1), ("-1", 1), ("0,-1,1", 2), ("MIG-c6d4,MIG-cba6", 2)])
def test_a_run_that_needs_more_than_it_is_allowed_is_told_so(allowed, wanted, refused):
    with refused(RunError):
        first_devices(allowed, wanted)
