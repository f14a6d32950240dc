from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, rate, ratio

SINGLE = [rate("16.74")]
CUT = [rate("518.80", 40), ratio("efficiency", "77.47%", 40)]
ROUNDED = [rate("1019.29", 100), ratio("efficiency", "60.89%", 100)]


def test_one_way_of_rounding_is_fine():
    assert examined("roundings", [*SINGLE, *CUT]) == [None]
    assert examined("roundings", [*SINGLE, *ROUNDED]) == [None]


def test_two_ways_in_one_table_are_worth_a_note():
    [diagnostic] = found("roundings", [*SINGLE, *CUT, *ROUNDED])
    assert diagnostic.severity is Severity.NOTE
    assert diagnostic.computation == "77.47% fit only if cut off, 60.89% only if rounded"


def test_two_tables_may_round_in_their_own_ways():
    other = {"table": "other"}
    rows = [rate("16.74", **other), rate("1019.29", 100, **other), ratio("efficiency", "60.89%", 100, **other)]
    assert examined("roundings", [*SINGLE, *CUT, *rows]) == [None, None]
