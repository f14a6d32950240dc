"""Every benchmark can be imported, so that a name it uses is not renamed without it."""

import importlib

import pytest

from dlperf_study.paths import PROJECT

MODULES = sorted(path.stem for path in (PROJECT / "benchmarks").glob("*.py"))


def test_there_are_benchmarks() -> None:
    assert "reading_logs" in MODULES


@pytest.mark.parametrize("name", MODULES)
def test_every_module_of_the_benchmarks_can_be_imported(name: str) -> None:
    importlib.import_module(f"benchmarks.{name}")
