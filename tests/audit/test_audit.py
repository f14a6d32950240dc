import re

import pytest

from dlperf_study.audit.audit import MOST_OF_A_KIND, audit, content, describe
from dlperf_study.audit.checks import load, names
from dlperf_study.core.errors import Severity
from tests.audit.tables import moved, number, rate, ratio, results

WRONG = [rate("100"), ratio("speedup", "1", 1), rate("90", 2), ratio("speedup", "1.90", 2)]


def test_every_file_is_a_check_and_severities_are_ordered():
    assert len(names()) > 10
    for name in names():
        assert load(name).question.endswith("?")
    assert list(Severity) == [Severity.NOTE, Severity.WARNING, Severity.ERROR]


def test_every_check_is_run_and_names_its_diagnostics():
    checked = audit(results(WRONG))
    assert [one.name for one in checked] == list(names())
    by_check = {one.name: one.diagnostics for one in checked if one.diagnostics}
    assert set(by_check) == {"falling", "ratios"}
    assert all(diagnostic.check == name for name, diagnostics in by_check.items() for diagnostic in diagnostics)


def test_nothing_to_examine_is_reported():
    checked = {one.name: one for one in audit(results([number("batches_per_task", "50")]))}
    assert {one.examined for one in checked.values()} == {0}
    assert describe(list(checked.values())) == f"nothing to examine: {', '.join(names())}"


def test_what_is_printed_twice_is_found_once_with_both_cells():
    again = [row | {"cell": f"again/{row['cell']}", "table": "again", "series": "again"} for row in WRONG[::2]]
    [falling] = [one for one in audit(results([*WRONG, *again])) if one.name == "falling"]
    [diagnostic] = falling.diagnostics
    assert len(diagnostic.cells) == 4


def test_the_heaviest_comes_first_and_then_what_was_examined(snapshot):
    *diagnostics, examined = describe(audit(results(WRONG))).split("\n\n")
    assert diagnostics == snapshot
    *_, line, idle = [line for line in examined.splitlines() if line.startswith(("ratios ", "nothing to examine: "))]
    assert re.split(" {2,}", line)[2:] == ["2", "ratios", "1 error"]
    assert "interval" in idle


@pytest.mark.parametrize("with_all", [False, True])
def test_of_many_diagnostics_of_a_kind_some_are_printed_unless_all_are_wanted(with_all):
    wrong = [
        row
        for position in range(MOST_OF_A_KIND + 3)
        for row in moved([rate("100"), rate(f"{90 - position}", 2)], f"t{position}")
    ]
    lines = describe(audit(results(wrong)), with_all).splitlines()
    assert sum(line.startswith("note (falling): ") for line in lines) == MOST_OF_A_KIND + 3 * with_all
    assert any(line.startswith("3 notes (falling) more") for line in lines) is not with_all


def test_json_has_every_check_and_every_diagnostic(snapshot):
    described = content(audit(results(WRONG)))
    assert [check["check"] for check in described["checks"]] == list(names())
    assert described["diagnostics"] == snapshot
