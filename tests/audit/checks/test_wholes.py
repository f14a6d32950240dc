import pytest

from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, number


@pytest.mark.parametrize("metric", ["mfu", "communication_share"])
@pytest.mark.parametrize("printed", ["0.31", "31%", "1", "1.00", "1.0"])
def test_a_share_is_at_most_the_whole(metric, printed):
    assert examined("wholes", [number(metric, printed)]) == [None]


@pytest.mark.parametrize(
    ("metric", "printed", "severity"),
    [
        ("mfu", "31", Severity.ERROR),
        ("mfu", "120%", Severity.WARNING),
        ("mfu", "400%", Severity.WARNING),
        ("mfu", "401%", Severity.ERROR),
        ("communication_share", "1.2", Severity.ERROR),
    ],
)
def test_more_than_the_whole_is_wrong(metric, printed, severity):
    [diagnostic] = found("wholes", [number(metric, printed)])
    assert diagnostic.severity is severity
    assert diagnostic.computation == f"{metric} is {printed}, and a share is at most 1"


def test_a_share_that_is_recomputed_is_examined_elsewhere():
    recomputed = number("mfu", "120%", flops_per_sample=1e9)
    assert examined("wholes", [recomputed]) == []
    assert len(found("wholes", [recomputed, number("mfu", "120%", 2)])) == 1
