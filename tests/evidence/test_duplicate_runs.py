from dataclasses import replace

from dlperf_study.core.paths import StudyPaths
from dlperf_study.evidence.run import DuplicateRuns, read_run
from tests.evidence_factory import configuration, write_run

ASKED = configuration(devices_per_node=2)


def test_a_run_by_the_same_processes_is_a_copy_and_not_counted(tmp_path, snapshot):
    first, second = (read_run(write_run(StudyPaths(tmp_path), ASKED, repetition)) for repetition in (1, 2))
    duplicates = DuplicateRuns()
    assert duplicates.checked(first) is first
    assert duplicates.checked(second) is second
    copy = duplicates.checked(replace(first, repetition=3))
    assert (copy.completed, copy.ranks) == (False, ())
    assert copy.reason == snapshot
    # One log that is a copy is enough.
    duplicates = DuplicateRuns()
    duplicates.checked(first)
    copy = duplicates.checked(replace(second, ranks=(second.ranks[0], first.ranks[1])))
    assert not copy.completed
    assert copy.reason.startswith("its rank 1 is the same process")


def test_a_folder_is_a_run_by_one_name_only(tmp_path):
    """Else a copy named 01 would be the first repetition once more."""
    paths = StudyPaths(tmp_path).configuration(ASKED.identity)
    for name in ("1", "01", "2", "0", "001"):
        (paths.folder / "runs" / name).mkdir(parents=True)
    assert [run.folder.name for run in paths.runs()] == ["1", "2"]
    assert [folder.name for folder in paths.misnamed_runs()] == ["0", "001", "01"]
