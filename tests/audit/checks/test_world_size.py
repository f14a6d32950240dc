from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, number, rate


def test_nodes_times_devices_of_a_node():
    assert examined("world_size", [rate("760.0", 16, nodes=2, devices_per_node=8)]) == [None]


def test_another_number_of_devices_contradicts_its_nodes():
    odd = {"nodes": 2, "devices_per_node": 4}
    [diagnostic] = found("world_size", [rate("760.0", 16, **odd), number("speedup", "7.60", 16, **odd)])
    assert diagnostic.severity is Severity.ERROR
    assert diagnostic.computation == "2 × 4 = 8, but world_size is 16"
    assert [cell.key for cell in diagnostic.cells] == ["table/throughput/16", "table/speedup/16"]


def test_devices_without_nodes_are_not_examined():
    assert examined("world_size", [rate("760.0", 16, nodes=2)]) == []


def test_devices_that_were_reckoned_are_not_held_against_their_own_nodes():
    assert examined("world_size", [rate("760.0", 16, nodes=2, devices_per_node=8) | {"world_size": None}]) == []
    assert examined("world_size", [rate("760.0", 16, nodes=2, devices_per_node=8, inferred="nodes")]) == []
