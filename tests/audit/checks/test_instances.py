from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, rate


def on(instance, device="Tesla V100", count=8):
    return [rate("2844", 8, instance=instance, device_name=device, devices_per_node=count)]


def test_a_machine_with_these_devices():
    assert examined("instances", on("p3.16xlarge")) == [None]


def test_a_machine_with_others():
    [diagnostic] = found("instances", on("p2.16xlarge"))
    assert diagnostic.severity is Severity.ERROR
    assert diagnostic.computation == (
        "p2.16xlarge has 16 × K80 (Amazon EC2 instance types, P2), but 8 × Tesla V100 is stated; "
        "p3.16xlarge, p3dn.24xlarge would have it"
    )


def test_a_machine_that_is_not_listed_is_reported():
    [diagnostic] = found("instances", on("x9.nano"))
    assert diagnostic.severity is Severity.NOTE


def test_every_number_of_a_machine_is_cited_once():
    rows = [row | {"cell": str(number)} for number, row in enumerate(on("p2.16xlarge") * 3)]
    [diagnostic] = found("instances", rows)
    assert len(diagnostic.cells) == 3
