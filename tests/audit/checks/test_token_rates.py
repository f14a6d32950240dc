import pytest

from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, number, rate


def rows(tokens, samples, **facts):
    return [number("tokens_per_second", tokens, 8, **facts), rate(samples, 8, **facts)]


@pytest.mark.parametrize(
    "facts", [{"tokens_per_sample": 1024.0}, {"tokens_per_sample": 1024.0, "sequence_length": 8192.0}]
)
def test_the_tokens_of_a_sample(facts):
    assert examined("token_rates", rows("2004.87", "1.958", **facts)) == [None]


def test_other_tokens_of_a_sample():
    [diagnostic] = found("token_rates", rows("2004.87", "1.958", tokens_per_sample=1000.0))
    assert diagnostic.severity is Severity.ERROR
    assert diagnostic.computation.endswith("1.958 throughput = 1023.9, but tokens_per_sample is 1000")


def test_samples_shorter_than_the_longest_are_a_warning():
    [diagnostic] = found("token_rates", rows("2004.87", "1.958", sequence_length=8192.0))
    assert diagnostic.severity is Severity.WARNING


def test_the_samples_of_a_step():
    steps = number("steps_per_second", "0.245", 8, global_batch=8.0)
    assert examined("token_rates", [rate("1.958", 8, global_batch=8.0), steps]) == [None]
    assert len(found("token_rates", [rate("2.958", 8, global_batch=8.0), steps])) == 1


def test_without_a_printed_quotient_nothing_is_examined():
    assert examined("token_rates", rows("2004.87", "1.958")) == []
    assert examined("token_rates", rows("0", "1.958", tokens_per_sample=1024.0)) == []
