import re

import pytest

from dlperf_study.audit.audit import audit, content, describe, significance
from dlperf_study.audit.checks import names
from tests.audit.tables import moved, number, ratio, results, throughput

WRONG = [throughput("100"), ratio("speedup", "1", 1), throughput("90", 2), ratio("speedup", "1.90", 2)]


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


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([throughput("100"), throughput("190", 2)], "no number contradicts the others"),
        (WRONG, "1 error, about speedup; 1 note"),
        (
            [
                *moved([throughput("100"), ratio("speedup", "3", 2), throughput("190", 2)], "row 1"),
                *moved([throughput("0")], "row 2"),
            ],
            "2 errors about row 2/table/throughput, row 1/table/speedup",
        ),
    ],
)
def test_the_last_line_counts_and_names_rows(rows, line):
    # A further check may add a note.
    assert significance(audit(results(rows)), "table").startswith(f"table: {line}")


@pytest.mark.parametrize(("each_number", "count"), [(False, 1), (True, 40)])
def test_the_diagnostics_of_a_column_do_not_grow_with_its_rows_unless_all_are_wanted(each_number, count):
    wrong = [
        row
        for position in range(40)
        for row in moved([throughput("100"), throughput(f"{90 - position}", 2)], f"t{position}")
    ]
    [falling] = [one for one in audit(results(wrong), each_number) if one.name == "falling"]
    assert len(falling.diagnostics) == count
    assert len({cell for diagnostic in falling.diagnostics for cell in diagnostic.cells}) == 80


def test_the_numbers_that_deviate_most_are_shown():
    speedups = ("1.90", "1.95", "2.90", "1.98", "1.97")
    rows = []
    for position, speedup in enumerate(speedups):
        table = {"table": f"t{position}"}
        rows += [throughput("100.0", **table), throughput("200.0", 2, **table), ratio("speedup", speedup, 2, **table)]
    [ratios] = [one for one in audit(results(rows)) if one.name == "ratios"]
    [diagnostic] = ratios.diagnostics
    assert diagnostic.computation.startswith("5 numbers: ")
    assert re.findall(r"printed ([\d.]+)", diagnostic.computation) == ["2.90", "1.90", "1.95"]
    assert re.findall(r"[\d.]+%", diagnostic.computation) == ["2.50%", "45.00%"]


def test_json_has_every_check_and_every_diagnostic(snapshot):
    described = content(audit(results(WRONG)))
    assert [check["check"] for check in described["checks"]] == list(names())
    assert described["diagnostics"] == snapshot
