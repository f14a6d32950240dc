import pytest

from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, number


def rows(of_job, of_device, devices=8):
    return [
        number("tokens_per_second", of_job, devices),
        number("tokens_per_second_per_device", of_device, devices),
    ]


@pytest.mark.parametrize("of_device", ["250.61", "250.6", "251", "250.60"])
def test_the_rate_of_a_device_rounded_or_cut_off(of_device):
    assert examined("device_rates", rows("2004.87", of_device)) == [None]


def test_another_rate():
    [diagnostic] = found("device_rates", rows("2004.87", "260.61"))
    assert diagnostic.severity is Severity.ERROR
    assert diagnostic.computation == "2004.87 / 8 = 250.61, printed 260.61"


def test_a_rate_of_the_job_as_that_of_a_device():
    [diagnostic] = found("device_rates", rows("2004.87", "2004.9"))
    assert diagnostic.computation.endswith("printed 2004.9: both are of the same scope")
    assert examined("device_rates", rows("2004.87", "2004.87", 1)) == [None]


def test_samples_are_not_compared_with_tokens():
    samples = number("throughput", "2004.87", 8)
    assert examined("device_rates", [samples, rows("1", "250.61")[1]]) == []
    assert examined("device_rates", [samples, number("samples_per_second_per_device", "250.61", 8)]) == [None]
