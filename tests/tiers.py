"""Which tests are slow, which share a worker, which run alone, and in what order workers take them.

Markers: `cluster` needs hosts or pods, `browser` a browser, `slow` trains or starts many processes; `make test-fast`
runs none of them. `alone` is for a test that measures time or ends processes: no other test runs meanwhile.
"""

import fcntl
import os
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
LOCK = Path(tempfile.gettempdir()) / f"dlperf_study-tests-{os.getuid()}"
#: A test that uses one of these fixtures trains on this machine. Only one study may do that at a time.
TRAINING_FIXTURES = {"measured", "machine"}
#: Files whose tests need the machine lock although they use none of these fixtures.
TRAINING_FILES = {
    "execution/test_gate.py",
    "frameworks/test_failing_ranks.py",
    "frameworks/test_torch_training.py",
    "frameworks/test_training.py",
}
#: Files that take more than five seconds without training: they build networks, reports or environments, or search.
SLOW_FILES = {
    "audit/test_fuzz.py",
    "guard/test_coordinator.py",
    "launchers/test_kubernetes.py",
    "logs/test_json_lines.py",
    "models/test_arcface.py",
    "models/test_networks.py",
    "models/test_torch_networks.py",
    "report/pages/test_notebooks.py",
    "report/pages/test_pages.py",
    "supervision/test_notebook.py",
    "test_adding_a_part.py",
    "test_docs_commands.py",
    "test_setup.py",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark and group the tests, and put those that take longest first; xdist reads the groups after it."""
    for item in items:
        path = item.path.relative_to(TESTS).as_posix()
        trains = path in TRAINING_FILES or bool(TRAINING_FIXTURES & set(fixtures_of(item)))
        is_cluster = path.startswith("clusters/")
        if is_cluster:
            item.add_marker("cluster")
        if "chromium" in fixtures_of(item):
            item.add_marker("browser")
        if trains or is_cluster or path in SLOW_FILES:
            item.add_marker("slow")
        # Hosts, Slurm and the machine lock exist once; other files share a worker for the sake of their fixtures.
        group = "cluster" if is_cluster else "machine" if trains else path
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=rank)


def fixtures_of(item: pytest.Item) -> list[str]:
    """Return the names of the fixtures that a test uses."""
    return list(getattr(item, "fixturenames", ()))


def rank(item: pytest.Item) -> int:
    """Return how early a test is handed out: a worker that gets the longest group last keeps the others waiting."""
    [group] = item.iter_markers("xdist_group")
    first = {"cluster": 0, "machine": 1}
    return first.get(group.args[0], 2 if item.get_closest_marker("slow") else 3)


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
