"""Faults performed for real left no process and no study ended; the page on troubleshooting has printed messages."""

import re
from functools import cache

from syrupy.extensions.amber.serializer import AmberDataSerializer

from dlperf_study.core.paths import PROJECT
from dlperf_study.study.job import RunStatus
from tests.docs import DOCS, words
from tests.programs.test_running_programs import OUTCOMES, PRINTED_OUTCOMES
from tools.faults.__main__ import row_key, rows_of_page
from tools.faults.fault import FAULTS

PAGE = DOCS / "troubleshooting.md"
#: How many faults must have been performed.
FEWEST = 40
#: The messages of the page that no program of a user provokes, each with the tests that do.
TESTS = {
    "there is no study …": ("study/test_study_file_errors.py",),
    "did you mean …": ("cli/test_cli.py", "study/test_study_file_errors.py"),
    "the package … is not installed": ("test_installed_package.py",),
    "nothing of study … can run on cluster …": ("cli/test_cli.py",),
    "is measuring …": ("execution/test_faults.py", "machines/supervision/test_locks.py"),
    "the disk is full, …": ("test_full_disk.py",),
    "… of this plan do not count: …": ("execution/test_reuse.py",),
    "out of memory: …": ("execution/test_out_of_memory.py",),
    "the ranks ended with different parameters: …": ("records/test_run.py",),
    "failed twice for the same reason": ("execution/test_failing_configurations.py",),
    "the nodes rejected two configurations of …": ("execution/test_refusals.py",),
    "other benchmark code: …": ("training/worker/test_two_checkouts.py",),
    "… was lost, its …": ("machines/node_agent/test_coordinator.py", "machines/clusters/test_ssh_losses.py"),
    "its coordinator was silent for …": ("machines/node_agent/test_coordinator.py",),
    "Slurm rejected the job: …": ("machines/clusters/test_slurm.py",),
    "it can never start": ("machines/launchers/test_slurm.py",),
    "not started within … s": ("machines/clusters/test_slurm.py",),
    "the benchmark code has changed since the job was submitted": ("machines/clusters/test_slurm_drivers.py",),
    "… was changed after the run": ("records/test_contradicting_evidence.py",),
    "disturbed by background load: …": ("dataset/test_run_diagnostics.py",),
    "there is no plan yet; …": ("cli/test_cli.py",),
    "building the report of study …": ("machines/supervision/test_locks.py",),
    "… stands still: …": ("report/pages/test_notebooks.py",),
    "… raised …": ("report/pages/test_notebooks.py",),
    "… no metadata of these logs …": ("logs/ingest/test_identification.py",),
    "no line of training in a known format": ("logs/ingest/test_refused_runs.py",),
    "… is a measured study; …": ("logs/ingest/test_ingestion.py",),
    "no run can be used; …": ("cli/test_cli_ingest.py",),
    "takes more than … s": ("core/test_reading_limits.py",),
}


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


def messages(section: str = "") -> dict[str, str]:
    """Return the rows of the tables of messages, of one section or all, by message."""
    text = PAGE.read_text(encoding="utf-8")
    if section:
        text = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    rows = {}
    for table in re.findall(r"^\| message \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE):
        for row in table.splitlines():
            message, rest = re.fullmatch(r"\| `([^`]+)`[^|]*\| (.*) \|", row).groups()
            rows[message] = rest
    return rows


def pattern(message: str) -> re.Pattern[str]:
    """Return what matches a message with anything for its ellipses."""
    return re.compile(r".*?".join(map(re.escape, message.split("…"))))


@cache
def printed_texts() -> str:
    """Return the literals of the package, joined where they go on in the next line, and the messages of snapshots."""
    files = [*(PROJECT / "dlperf_study").rglob("*.py"), *(PROJECT / "tests" / "messages").rglob("*.ambr")]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return re.sub(r'"\s*\n\s*f?"', "", text)


def test_every_status_is_explained():
    assert set(RunStatus) <= words("docs/troubleshooting.md")


def test_every_message_is_one_that_is_printed_and_has_a_test():
    of_programs = messages("Your script")
    assert set(messages()) - set(of_programs) == set(TESTS)
    assert [message for message in TESTS if not pattern(message).search(printed_texts())] == []
    for files in TESTS.values():
        for file in files:
            assert "def test_" in (PROJECT / "tests" / file).read_text(encoding="utf-8"), file


def test_every_fault_of_a_program_that_is_measured_has_its_row_and_status():
    snapshots = AmberDataSerializer.read_file(str(PROJECT / "tests/messages/programs/test_running_programs.ambr"))
    reasons = {str(entry.name).rpartition("[")[2].rstrip("]"): str(entry.data) for entry in snapshots}
    printed = reasons.pop("test_what_programs_print_and_what_of_it_is_no_step")
    reasons |= {fault: re.search(rf"'{fault} 1': (.*),", printed)[1] for fault in PRINTED_OUTCOMES}
    statuses = {fault: status for fault, (status, _) in OUTCOMES.items()} | PRINTED_OUTCOMES
    faults = {fault for fault, status in statuses.items() if status != "completed"}
    found = set()
    for message, rest in messages("Your script").items():
        matching = {fault for fault in faults if pattern(message).search(reasons[fault])}
        assert matching, message
        assert {f"`{statuses[fault]}`" for fault in matching} == {rest.partition(" | ")[0]}, message
        found |= matching
    assert found == faults
