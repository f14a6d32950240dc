"""What makes a finished run worth measuring again."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dlperf_study.cluster import software as module
from dlperf_study.cluster.cluster import DEFAULT, Cluster
from dlperf_study.cluster.software import MEASURING, measuring_code
from dlperf_study.execution.repetitions import fingerprint
from dlperf_study.execution.support import _installed_versions
from dlperf_study.paths import PROJECT
from dlperf_study.study.configuration import Configuration
from tests.frameworks.launching import CLUSTER, configuration
from tests.shell_program import program

ASKED = configuration()


@pytest.mark.parametrize(
    ("asked", "cluster", "same"),
    [
        (replace(ASKED, repeats=9, timeout_seconds=9), CLUSTER, True),
        (ASKED, replace(CLUSTER, idle_wait_seconds=9.0, link="another"), True),
        (replace(ASKED, measured_steps=9), CLUSTER, False),
        (replace(ASKED, seed=9), CLUSTER, False),
        (ASKED, replace(CLUSTER, device="gpu"), False),
    ],
)
def test_what_numbers_depend_on(asked: Configuration, cluster: Cluster, same: bool) -> None:
    assert (fingerprint(asked, cluster) == fingerprint(ASKED, CLUSTER)) is same


def test_numbers_depend_on_the_library_and_on_its_python(tmp_path: Path) -> None:
    older = fingerprint(ASKED, with_library(tmp_path, "3.0.0"))
    newer = fingerprint(ASKED, with_library(tmp_path, "3.0.1"))
    assert newer != older
    (tmp_path / "moved").mkdir()
    assert fingerprint(ASKED, with_library(tmp_path / "moved", "3.0.1")) != newer
    assert fingerprint(ASKED, with_library(tmp_path, "3.0.0")) == older


def with_library(folder: Path, version: str) -> Cluster:
    """Return a cluster whose Python says that it has this version of the framework's library."""
    _installed_versions.cache_clear()
    python = program(folder, f'echo \'{{"code": "", "software": {{"paddlepaddle": "{version}"}}}}\'')
    return replace(CLUSTER, python={DEFAULT: python})


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package's source, taken for the source."""
    shutil.copytree(PROJECT / "dlperf_study", tmp_path / "dlperf_study", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(module, "PROJECT", tmp_path)
    return tmp_path / "dlperf_study"


def digest() -> str:
    return measuring_code.__wrapped__()


def _append(file: Path) -> None:
    file.write_text(file.read_text() + "\n# changed\n")


def _rename(file: Path) -> None:
    file.rename(file.with_name("another.py"))


@pytest.mark.parametrize("room", MEASURING)
@pytest.mark.parametrize("change", [_append, _rename, Path.unlink])
def test_a_change_of_the_measuring_code(code: Path, room: str, change: Callable[[Path], object]) -> None:
    before = digest()
    change(code / room / "__init__.py")
    assert digest() != before


@pytest.mark.parametrize(
    "file", ["report/pages/pages.py", "dataset/run_table.py", "columns/measured.py", "__main__.py"]
)
def test_a_change_of_the_reading_code(code: Path, file: str) -> None:
    before = digest()
    _append(code / file)
    assert digest() == before


def test_the_digest_is_of_this_code(code: Path) -> None:
    assert digest() == measuring_code()
