"""A log that is there twice: counted once in one configuration, and not at all in two."""

import gzip
import shutil
from collections.abc import Callable

import pytest

from tests.ingest.conftest import Ingest, WriteLog, reason


def test_the_same_log_twice_is_counted_once(ingested: Ingest, write_log: WriteLog) -> None:
    first = write_log("1n1g/r50_b128_fp32_1.log")
    shutil.copy(first, first.with_name("r50_b128_fp32_2.log"))
    dataset = ingested()
    assert reason(dataset, 1) == ""
    assert "prints the same numbers as 1n1g/r50_b128_fp32_1.log" in reason(dataset, 2)


def test_a_log_of_two_configurations_counts_in_neither(ingested: Ingest, write_log: WriteLog) -> None:
    """Nobody can tell which of the two is where it belongs."""
    first = write_log("1n1g/r50_b128_fp32_1.log")
    shutil.copy(first, write_log("1n8g/r50_b128_fp32_1.log"))
    for log in ("1n1g/r50_b128_fp32_2.log", "1n8g/r50_b128_fp32_2.log"):
        write_log(log)
    dataset = ingested()
    same = "1n1g/r50_b128_fp32_1.log has the same bytes as 1n8g/r50_b128_fp32_1.log, of another configuration"
    assert reason(dataset, 1).startswith(same)
    assert "and neither counts" in reason(dataset, 1, devices_per_node=8)
    assert reason(dataset, 2) == reason(dataset, 2, devices_per_node=8) == ""


@pytest.mark.parametrize(
    "changed", [gzip.compress, lambda content: content.replace(b"\n", b"\r\n")], ids=["packed", "other ends of lines"]
)
def test_a_changed_copy_in_another_configuration_counts_no_more_than_its_log(
    ingested: Ingest, write_log: WriteLog, changed: Callable[[bytes], bytes]
) -> None:
    copy, same_configuration = (write_log(f"1n1g/r50_b128_fp32_{repetition}.log") for repetition in (1, 3))
    log = write_log("1n8g/r50_b128_fp32_1.log", 8)
    for misplaced in (copy, same_configuration):
        misplaced.write_bytes(changed(log.read_bytes()))
    for path in ("1n1g/r50_b128_fp32_2.log", "1n8g/r50_b128_fp32_2.log"):
        write_log(path)
    dataset = ingested()
    same = "1n1g/r50_b128_fp32_1.log prints the same numbers as 1n8g/r50_b128_fp32_1.log, of another configuration"
    assert reason(dataset, 1).startswith(same)
    assert reason(dataset, 3).startswith("duplicate run: prints the same numbers as 1n1g/r50_b128_fp32_1.log")
    assert "prints the same numbers as 1n1g/r50_b128_fp32_1.log" in reason(dataset, 1, devices_per_node=8)
    assert "and neither counts" in reason(dataset, 1, devices_per_node=8)
    assert reason(dataset, 2) == reason(dataset, 2, devices_per_node=8) == ""
    assert set(dataset.steps["repetition"]) == {2}


def test_the_log_of_a_node_is_of_one_run(ingested: Ingest, write_log: WriteLog) -> None:
    nodes = [write_log(f"2n1g/node{node}/r50_b128_fp32_1.log") for node in (0, 1)]
    write_log("2n1g/node0/r50_b128_fp32_2.log")
    shutil.copy(nodes[1], nodes[1].with_name("r50_b128_fp32_2.log"))
    dataset = ingested()
    assert reason(dataset, 1, nodes=2) == ""
    assert "prints the same numbers as 2n1g/node1/r50_b128_fp32_1.log" in reason(dataset, 2, nodes=2)
