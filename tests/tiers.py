"""Which tests are slow, which share a worker, which run alone, and in what order workers take them.

Markers: `cluster` needs hosts or pods, `browser` a browser, `slow` trains or starts many processes; `make test-fast`
runs none of them. `alone` is for a test that measures time: no other test runs meanwhile.
"""

import fcntl
import os
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
LOCK = Path(tempfile.gettempdir()) / f"dlperf_study-tests-{os.getuid()}"
#: Files whose tests measure time. They come last: a test that waits to be alone keeps all workers waiting for the
#: longest test of the others, and at the end none is long.
ALONE_FILES = {"cluster/test_cpu_group.py", "selftest/test_shaped_link.py"}
#: Files whose tests train on this machine, or need its lock: only one study may measure there at a time.
TRAINING_FILES = {
    "execution/test_evidence.py",
    "execution/test_faults.py",
    "execution/test_gate.py",
    "execution/test_largest_batch.py",
    "execution/test_out_of_memory.py",
    "execution/test_resume.py",
    "frameworks/test_training.py",
    "selftest/test_real.py",
}
#: Files that take more than five seconds: they build networks, reports or environments, search, or train where it does
#: not matter that others do too.
SLOW_FILES = {
    "analysis/test_drift.py",
    "audit/test_fuzz.py",
    "check/test_check.py",
    "evidence/test_damage.py",
    "execution/test_gpu_machines.py",
    "data_sources/test_failing_runs.py",
    "data_sources/test_tensorflow_batches.py",
    "frameworks/test_failing_ranks.py",
    "frameworks/test_paddle_training.py",
    "frameworks/test_synchronous_servers.py",
    "frameworks/test_tensorflow_pieces.py",
    "frameworks/test_tensorflow_training.py",
    "frameworks/test_torch_training.py",
    "guard/test_coordinator.py",
    "launchers/test_kubernetes.py",
    "logs/test_json_lines.py",
    "models/test_arcface.py",
    "models/test_networks.py",
    "models/test_tensorflow_networks.py",
    "models/test_torch_networks.py",
    "paper/test_paper.py",
    "report/figures/test_every_figure.py",
    "report/figures/test_study_figures.py",
    "report/pages/test_notebooks.py",
    "report/pages/test_pages.py",
    "report/tables/test_published_tables.py",
    "report/tables/test_replication.py",
    "report/test_ingested.py",
    "selftest/test_checks.py",
    "selftest/test_command.py",
    "selftest/test_shaped_link.py",
    "supervision/test_notebook.py",
    "test_adding_a_part.py",
    "test_docs_commands.py",
    "test_full_disk.py",
    "test_setup.py",
}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files whose tests all are slow where none is wanted: to import them takes seconds per worker."""
    is_unwanted = "not slow" in config.option.markexpr and is_slow(collection_path)
    return True if is_unwanted else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests, and put those that take longest first."""
    for item in items:
        path = item.path.relative_to(TESTS).as_posix()
        group = group_of(path)
        if group in ("alone", "cluster"):
            item.add_marker(group)
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
        if is_slow(item.path):
            item.add_marker("slow")
    items.sort(key=rank)


def is_slow(file: Path) -> bool:
    """Return whether all tests of a file are slow."""
    path = file.relative_to(TESTS).as_posix()
    return path in SLOW_FILES or group_of(path) in ("cluster", "machine")


def group_of(path: str) -> str:
    """Return which tests share a worker with those of a file.

    Hosts, Slurm and the machine lock exist once; the tests of another file share it for the sake of their fixtures.
    """
    if path in ALONE_FILES:
        return "alone"
    if path.startswith("clusters/"):
        return "cluster"
    return "machine" if path in TRAINING_FILES else path


def rank(item: pytest.Item) -> int:
    """Return how early a test is handed out: a worker that gets the longest group last keeps the others waiting."""
    ranks = {"cluster": 0, "machine": 1, "alone": 4}
    group = group_of(item.path.relative_to(TESTS).as_posix())
    return ranks.get(group, 2 if item.get_closest_marker("slow") else 3)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out groups of tests; `loadgroup` of pytest-xdist 3.8 does not with pytest 9.2."""
    from xdist.scheduler import LoadScopeScheduling

    class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid.partition("::")[0].removeprefix("tests/"))

    return GroupScheduling(config, log)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let tests of several workers run at once, except those that run alone."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return (yield)
    with turn(alone=item.get_closest_marker("alone") is not None):
        return (yield)


@contextmanager
def turn(alone: bool) -> Iterator[None]:
    """Hold a lock together with other workers, or alone.

    A test that waits to be alone keeps the gate closed; otherwise tests that overlap would keep it waiting for ever.
    """
    with open(f"{LOCK}.gate", "w") as gate, open(f"{LOCK}.lock", "w") as lock:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)
