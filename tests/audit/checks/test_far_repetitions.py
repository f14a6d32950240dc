from tests.audit.tables import examined, found, rate, runs


def test_runs_that_agree():
    assert examined("far_repetitions", runs(["397.44", "397.64", "398.05", "398.98"])) == [None]


def test_a_run_far_from_the_other_runs():
    [diagnostic] = found("far_repetitions", [rate("4386.9"), *runs(["4038.81", "4390.1", "4386.9", "4380.0"])])
    assert diagnostic.computation.startswith("4038.81, but the median of the other runs is 4386.9 (-7.9%)")
    assert diagnostic.cells[0].text == "4038.81"
    assert len(diagnostic.cells) == 4


def test_one_run_is_not_compared():
    assert examined("far_repetitions", runs(["397.44"])) == []


def test_runs_whose_table_is_not_published_count_too():
    rows = [row | {"runs_of": None} for row in runs(["100", "101", "150"])]
    assert len(found("far_repetitions", rows)) == 1


def test_slow_runs_are_compared_too_and_with_a_median_of_nothing_none_is():
    [diagnostic] = found("far_repetitions", runs(["0.40", "0.41", "0.40", "0.60"]))
    assert diagnostic.computation.startswith("0.60, but the median of the other runs is 0.4 (+50.0%)")
    assert examined("far_repetitions", runs(["0", "0", "0", "5"])) == [None]
