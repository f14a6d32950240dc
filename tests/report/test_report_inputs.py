"""A report is current until something that it is made from changes."""

import json
import os
from collections.abc import Callable

import pytest

from dlperf_study.core.paths import SELFTEST, StudyPaths
from dlperf_study.core.writing import write_atomically
from dlperf_study.dataset import inputs
from dlperf_study.dataset.inputs import is_report_current, record_report, report_digest
from dlperf_study.study.plan import Plan
from tests.evidence_factory import Planned, change, configuration, write_plan, write_run

ASKED = configuration(devices_per_node=2)


@pytest.fixture
def current(paths: StudyPaths) -> StudyPaths:
    """A study of two runs whose report is current; no test here reads its pages."""
    for repetition in (1, 2):
        write_run(paths, ASKED, repetition)
    write_plan(paths, [Planned(ASKED)])
    for folder in (paths.report, paths.tables, paths.dataset):
        folder.mkdir()
    paths.report_page.touch()
    record_report(paths, report_digest(paths))
    assert is_report_current(paths)
    return paths


CHANGES: dict[str, Callable[[StudyPaths], object]] = {
    "a run more": lambda paths: write_run(paths, ASKED, 3),
    "a run less": lambda paths: paths.configuration(ASKED.configuration_id).run(2).run_file.unlink(),
    "another outcome": lambda paths: change(paths.configuration(ASKED.configuration_id).run(1), reason="x"),
    "a shorter log": lambda paths: os.truncate(paths.configuration(ASKED.configuration_id).run(2).rank_log(1), 99),
    "another plan": lambda paths: Plan.read(paths.plan_file).changed(title="Another").write(paths.plan_file),
    "a self-test": lambda _: write_atomically(StudyPaths.of(SELFTEST).selftest_results, "[]"),
    "no page": lambda paths: paths.report_page.unlink(),
    "no dataset": lambda paths: paths.dataset.rmdir(),
    "no record of inputs": lambda paths: paths.report_inputs.unlink(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_after_a_change_it_is_not(current, name):
    CHANGES[name](current)
    assert not is_report_current(current)


def test_an_earlier_measurement_is_an_input_too(current):
    earlier = current.earlier_measurement(1)
    run = write_run(earlier, ASKED, 1)
    write_plan(earlier, [Planned(ASKED)])
    record_report(current, report_digest(current))
    assert is_report_current(current)
    Plan.read(current.plan_file).write(current.plan_file)
    assert is_report_current(current), "the same plan, written again"
    change(run, reason="x")
    assert not is_report_current(current)


def test_a_change_of_the_package_does(current, tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "PACKAGE_FOLDER", tmp_path / "dlperf_study")
    module = tmp_path / "dlperf_study" / "module.py"
    write_atomically(module, json.dumps("one"))
    record_report(current, report_digest(current))
    compiled = module.parent / "__pycache__" / "module.pyc"
    write_atomically(compiled, "compiled")
    assert is_report_current(current)
    write_atomically(module, json.dumps("other"))
    assert not is_report_current(current)
