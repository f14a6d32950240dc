import numpy as np
import pytest

from dlperf_study.analysis.comparison import throughput_ratio
from dlperf_study.analysis.statistics import Interval
from dlperf_study.errors import BaselineError
from dlperf_study.plan.plan import Entry
from dlperf_study.study.grid import DENOMINATORS
from tests.evidence_factory import configuration

ONE, TWO, OTHER = configuration(), configuration(devices_per_node=2), configuration(framework="torch_ddp")
ENTRY = Entry(TWO, ONE.identity, reference_identity=OTHER.identity)


def rates(*values):
    return np.array(values)


def test_a_ratio_is_that_of_medians_and_carries_its_denominator():
    found = throughput_ratio(ENTRY, "baseline", {TWO.identity: rates(150, 180, 190), ONE.identity: rates(90, 100, 120)})
    assert found.value == pytest.approx(180 / 100)
    assert (found.interval.low, found.interval.high) == pytest.approx((150 / 120, 190 / 90))
    assert (found.denominator_throughput, found.denominator_interval) == (100, Interval(90, 120, 0.75))


def test_each_kind_has_its_denominator():
    known = {TWO.identity: rates(180), ONE.identity: rates(100), OTHER.identity: rates(90)}
    assert [throughput_ratio(ENTRY, kind, known).denominator_throughput for kind in DENOMINATORS] == [100, 90]


def test_too_few_runs_give_a_ratio_without_interval():
    found = throughput_ratio(ENTRY, "baseline", {TWO.identity: rates(180, 190), ONE.identity: rates(90, 100, 120)})
    assert found.value == pytest.approx(1.85)
    assert found.interval is None


@pytest.mark.parametrize("kind", DENOMINATORS)
@pytest.mark.parametrize("measured", [True, False])
def test_without_a_measured_denominator_there_is_no_ratio(kind, measured):
    denominator = ENTRY.denominator(kind)
    with pytest.raises(BaselineError, match=f"no run of its declared {kind} {denominator} completed"):
        throughput_ratio(ENTRY, kind, {TWO.identity: rates(180)} | ({denominator: rates()} if measured else {}))


def test_a_denominator_against_itself_is_exactly_one():
    found = throughput_ratio(Entry(ONE, ONE.identity), "baseline", {ONE.identity: rates(90, 100, 120)})
    assert (found.value, found.interval) == (1.0, Interval(1.0, 1.0, 0.75))
