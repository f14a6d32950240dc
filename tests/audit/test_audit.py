import re
from pathlib import Path

from dlperf_study.audit.audit import audit, describe
from dlperf_study.audit.checks import load, names
from dlperf_study.diagnostic import Severity
from tests.audit.tables import number, rate, ratio, results

WRONG = [rate("100"), ratio("speedup", "1", 1), rate("90", 2), ratio("speedup", "1.90", 2)]


def test_every_file_is_a_check():
    assert len(names()) > 10
    for name in names():
        assert load(name).question.endswith("?")


def test_every_check_has_tests_of_its_own():
    tests = {file.stem.removeprefix("test_") for file in (Path(__file__).parent / "checks").glob("test_*.py")}
    assert tests == set(names())


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


def test_the_heaviest_comes_first():
    text = describe(audit(results(WRONG)))
    assert "error (ratios): 90 / 100 = 0.9, printed 1.90: it fits no rounding\n" in text
    assert "\n  cells: table/speedup/2; table/throughput/2; table/throughput/1\n  possible explanations: " in text
    assert text.index("error (ratios)") < text.index("note (falling)")
    assert text.index("note (falling)") < text.index("\nratios ")
    assert re.search(r"^nothing to examine: .*\binterval\b", text.rpartition("\n")[2])
    assert "nothing to examine" not in text.rpartition("\n")[0]
    [line] = [line for line in text.splitlines() if line.startswith("ratios ")]
    assert re.split(" {2,}", line) == [
        "ratios",
        "Does every printed ratio follow from its own numbers?",
        "2",
        "ratios",
        "1 error",
    ]


def test_severities_are_ordered():
    assert list(Severity) == [Severity.NOTE, Severity.WARNING, Severity.ERROR]
