"""The table of the faults that were performed: declared ones only, nothing left by any, and each study went on."""

import re

from dlperf_study.core.paths import PROJECT
from tests.programs.test_running_programs import OUTCOMES, PRINTED_OUTCOMES
from tools.faults.__main__ import PAGE, row_key, rows_of_page
from tools.faults.fault import FAULTS

#: How many faults must have been performed.
FEWEST = 40


def test_every_row_is_of_a_declared_fault_in_their_order():
    keys = [row_key(fault) for fault in FAULTS]
    assert len(set(keys)) == len(keys)
    rows = list(rows_of_page())
    assert rows == [key for key in keys if key in rows]
    assert len(rows) >= FEWEST
    assert {key.split(" | ")[1].removesuffix(" |") for key in rows} == {"local", "ssh", "slurm"}


def test_no_fault_left_a_process_and_every_study_went_on():
    for row in rows_of_page().values():
        *_, silence, orphans, evidence, continued = row.strip("| ").split(" | ")
        assert (orphans, silence != "never") == ("0", True), row
        assert evidence, row
        assert continued.startswith("yes"), row


def test_every_fault_that_a_user_may_meet_has_a_test():
    table = PAGE.read_text().partition("| what happens |")[2].partition("\n\n")[0].splitlines()[2:]
    assert len(table) >= FEWEST
    for row in table:
        *_, tests = row.strip("| ").split(" | ")
        files = re.findall(r"`([\w/]+\.py)`", tests)
        assert files, row
        assert tests == ", ".join(f"`{file}`" for file in files), row
        for file in files:
            assert "def test_" in (PROJECT / "tests" / file).read_text(), row


def test_every_fault_of_a_program_that_is_measured_has_its_row_and_outcome():
    rows = re.findall(r"^\| .*\(`([a-z ]+)`\) \| ([a-z]+) \|", PAGE.read_text(), re.MULTILINE)
    statuses = {fault: status for fault, (status, _) in OUTCOMES.items() if fault != "none"}
    assert dict(rows) == statuses | PRINTED_OUTCOMES
