"""Every benchmark can be imported, so that a name it uses is not renamed without it."""

import importlib

import pytest

from dlperf_study.core.paths import PROJECT

MODULES = sorted(path.stem for path in (PROJECT / "benchmarks").glob("*.py"))


def test_there_are_benchmarks():
    assert "reading_logs" in MODULES


@pytest.mark.parametrize("name", MODULES)
def test_every_module_of_the_benchmarks_can_be_imported(name):
    importlib.import_module(f"benchmarks.{name}")


@pytest.mark.slow
def test_a_simulated_study_is_what_its_evidence_would_be():
    from benchmarks.coverage import check_evidence, linear_fall, simulated

    check_evidence(simulated(linear_fall, rounds=3, seed=(0, 0)))
