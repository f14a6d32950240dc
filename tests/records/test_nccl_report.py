"""What NCCL printed on real machines is read: see ``nccl/README.md`` for whose text it is."""

from dataclasses import replace
from pathlib import Path

import pytest

from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import RunPaths
from dlperf_study.records.nccl_report import NcclReport, link_contradictions, nccl_report, read_nccl_report

SAMPLES = Path(__file__).parent / "nccl"


def sample(name: str) -> NcclReport:
    return nccl_report([(SAMPLES / f"{name}.log").read_text()])


def test_one_rank_on_an_h100_has_channels_and_a_network_and_no_connections():
    report = sample("one_h100")
    assert report.version == "2.28.9+cuda13.0"
    assert (report.network, report.cards) == ("Socket", ("eth0",))
    assert (report.channels, report.rings, report.trees) == (64, ("0",), 2)
    assert (report.connections, report.path) == ({}, "LOC")


def test_links_are_told_apart():
    report = sample("two_nodes_infiniband")
    assert report.connections == {"NET/IB/GDRDMA": 3, "P2P": 2}
    assert report.path == "NVL"
    assert sample("two_nodes_sockets").connections == {"NET/Socket": 1, "P2P": 3}
    assert sample("shared_memory").connections == {"SHM": 4}


def test_rings_have_an_order_of_ranks_and_trees_a_number():
    report = sample("sixteen_ranks")
    assert (report.channels, len(report.rings), report.trees) == (8, 2, 8)
    assert report.rings[0] == "0 5 4 7 6 3 2 1 8 13 12 15 14 11 10 9"
    assert report.connections == {"NET/IB": 2, "P2P": 1}


def test_cards_are_those_of_the_network_that_is_used():
    report = sample("roce_cards")
    assert (report.network, report.cards) == ("IB", tuple(f"mlx5_{number}:1/RoCE" for number in (0, 3, 4, 5)))
    # There is a plugin for InfiniBand without a card on the machine of the H100.
    assert "[RO]" not in sample("one_h100").cards


@pytest.mark.parametrize(
    ("name", "link", "nodes", "message"),
    [
        ("one_h100", "100 Gbit/s InfiniBand", 2, "NCCL communicates by TCP over eth0 between nodes"),
        ("shared_memory", "NVLink", 1, "NCCL connects 4 pairs of ranks by SHM, through the host"),
    ],
)
def test_another_link_in_the_cluster_file_is_a_contradiction(name, link, nodes, message):
    [contradiction] = link_contradictions(sample(name), link, nodes)
    assert contradiction == f"{message}, but the cluster file has interconnect: {link}"


def test_only_what_is_stated_as_it_is_contradicts_nothing():
    by_host = replace(sample("two_nodes_infiniband"), path="PHB")
    [contradiction] = link_contradictions(by_host, "NVLink (NV18)", 1)
    assert contradiction.startswith("NCCL's slowest path between GPUs is PHB")
    assert not list(link_contradictions(replace(by_host, path="NVL"), "NVLink (NV18)", 1))
    assert not list(link_contradictions(sample("roce_cards"), "100 Gbit/s RoCE", 2))
    assert not list(link_contradictions(sample("one_h100"), "10 Gbit/s Ethernet", 2))


def test_a_run_in_which_nccl_wrote_nothing_has_no_report(tmp_path):
    with pytest.raises(RecordError, match="NCCL wrote no report"):
        read_nccl_report(RunPaths(tmp_path))
