"""Which tests each target of make runs, which share a worker, which run alone, and in what order workers take them.

`make test` runs the tests without `matrix` and `ci`, `make test-all` those without `ci`, `make test-ci` those with it.
`alone` is for a test that measures time: no other test runs meanwhile.
"""

import fcntl
import os
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
LOCK = Path(tempfile.gettempdir()) / f"dlperf_study-tests-{os.getuid()}"
#: Files whose tests measure time. They come last, and all after one wait: who waits to be alone keeps all workers
#: waiting for the longest test of the others, and at the end none is long.
ALONE_FILES = {"machines/cluster/test_cpu_group.py", "selftest/test_shaped_link.py"}
#: Files whose tests need the lock of this machine, as only one study may measure there at a time, or the study that
#: was measured for all of them. Files of training whose times nobody judges are elsewhere: they share the machine.
TRAINING_FILES = {
    "execution/test_evidence.py",
    "execution/test_faults.py",
    "execution/test_machine_lock.py",
    "execution/test_resume.py",
    "training/frameworks/test_training.py",
    "programs/test_running_programs.py",
    "selftest/test_real.py",
}
#: Files of clusters that use the hosts without Slurm.
HOST_FILES = ("machines/clusters/test_ssh", "machines/clusters/test_kubernetes")
#: The groups of tests on clusters, each for one worker.
CLUSTER_GROUPS = {"hosts", "slurm"}
EARLY_GROUPS = {"machine"} | CLUSTER_GROUPS
#: Files that a worker begins with, because they take longest.
LONGEST_FILES = {
    "training/frameworks/test_torch_training.py",
    "execution/test_out_of_memory.py",
    "training/frameworks/test_tensorflow_training.py",
    "training/models/test_arcface.py",
    "training/models/test_networks.py",
}
#: Files that only `make test-ci` runs, besides those of clusters: they need root, a browser, programs of users, whole
#: studies or sharded models, or make environments.
CI_FILES = {
    "api/test_explorer.py",
    "execution/test_faults.py",
    "execution/test_largest_batch.py",
    "programs/recorder/test_callbacks.py",
    "programs/test_examples.py",
    "programs/test_orphans.py",
    "programs/test_running_programs.py",
    "report/pages/test_how_made.py",
    "report/pages/test_long_tables.py",
    "report/pages/test_pages.py",
    "report/pages/test_paper_and_phone.py",
    "selftest/test_real.py",
    "test_adding_a_part.py",
    "test_docs_site.py",
    "test_full_disk.py",
    "test_install.py",
    "test_installed_package.py",
    "test_lab.py",
    "test_setup.py",
    "training/frameworks/test_torch_pipeline.py",
    "training/frameworks/test_torch_tensor.py",
    "training/frameworks/test_torch_zero.py",
    "training/frameworks/test_transformer_ranks.py",
}
#: Files of real starts of frameworks, launchers and layouts.
MATRIX_FILES = LONGEST_FILES | {
    "core/test_streams.py",
    "execution/test_gpu_machines.py",
    "execution/test_resume.py",
    "execution/test_watching.py",
    "machines/launchers/test_kubernetes_coordinator.py",
    "machines/node_agent/test_coordinator.py",
    "test_foreign_folders.py",
    "test_parts_of_users.py",
    "training/data_loaders/test_failing_runs.py",
    "training/data_loaders/test_tensorflow_batches.py",
    "training/frameworks/test_compilers.py",
    "training/frameworks/test_failing_ranks.py",
    "training/frameworks/test_meeting.py",
    "training/frameworks/test_number_formats.py",
    "training/frameworks/test_paddle_launcher.py",
    "training/frameworks/test_paddle_training.py",
    "training/frameworks/test_paddle_zero.py",
    "training/frameworks/test_synchronous_servers.py",
    "training/frameworks/test_tuning.py",
    "training/models/test_tensorflow_networks.py",
    "training/models/test_torch_networks.py",
    "training/models/test_transformer_libraries.py",
}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files whose tests are unwanted: to import them takes seconds per worker."""
    wanted = config.option.markexpr
    if "not matrix" in wanted and is_matrix(collection_path):
        return True
    if "not ci" in wanted and is_ci(collection_path):
        return True
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests, and put those that take longest first."""
    for item in items:
        path = item.path.relative_to(TESTS).as_posix()
        if path in ALONE_FILES:
            item.add_marker("alone")
        if is_ci(item.path):
            item.add_marker("ci")
        if is_matrix(item.path):
            item.add_marker("matrix")
    items.sort(key=rank)


def is_matrix(file: Path) -> bool:
    """Return whether `make test-all` runs a file, and `make test` does not."""
    return file.relative_to(TESTS).as_posix() in MATRIX_FILES


def is_ci(file: Path) -> bool:
    """Return whether only `make test-ci` runs a file."""
    path = file.relative_to(TESTS).as_posix()
    return path in CI_FILES or group_of(path) in CLUSTER_GROUPS


def group_of(path: str) -> str:
    """Return which tests share a worker with those of a file.

    Slurm and the machine lock exist once; to start hosts, and to make the pages of the golden study, takes time.
    """
    if path in ALONE_FILES:
        return "alone"
    if path in TRAINING_FILES:
        return "machine"
    if path.startswith("golden_study/"):
        return "golden_study"
    if path.startswith("machines/clusters/"):
        return "hosts" if path.startswith(HOST_FILES) else "slurm"
    return path


def rank(item: pytest.Item) -> int:
    """Return how early a test is handed out: a worker that gets the longest group last keeps the others waiting."""
    path = item.path.relative_to(TESTS).as_posix()
    if group_of(path) in EARLY_GROUPS:
        return 0
    if path in LONGEST_FILES or path in CI_FILES:
        return 1
    if path in ALONE_FILES:
        return 4
    return 2 if item.get_closest_marker("matrix") else 3


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out groups of tests; `loadgroup` of pytest-xdist 3.8 does not with pytest 9.2."""
    from xdist.scheduler import LoadScopeScheduling

    class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid.partition("::")[0].removeprefix("tests/"))

    return GroupScheduling(config, log)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Let tests of several workers run at once, except those that run alone."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return (yield)
    TURN.take(is_alone(item))
    try:
        return (yield)
    finally:
        if not (is_alone(item) and nextitem and is_alone(nextitem)):
            TURN.give_back()


def is_alone(item: pytest.Item) -> bool:
    """Return whether no other test may run meanwhile."""
    return item.get_closest_marker("alone") is not None


class Turn:
    """A lock that workers hold together, or one alone.

    Who waits to be alone keeps the gate closed; otherwise tests that overlap would keep it waiting for ever.
    """

    def __init__(self) -> None:
        self._lock: int | None = None

    def take(self, alone: bool) -> None:
        """Wait for the lock, unless it is held already."""
        if self._lock is not None:
            return
        with open(f"{LOCK}.gate", "w") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            self._lock = os.open(f"{LOCK}.lock", os.O_RDWR | os.O_CREAT)
            fcntl.flock(self._lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)

    def give_back(self) -> None:
        """Let others have it; to close a file gives back its lock."""
        if self._lock is not None:
            os.close(self._lock)
        self._lock = None


TURN = Turn()
