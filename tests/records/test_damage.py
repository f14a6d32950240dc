"""Damaged evidence: each is one message that names file, key and value, and what is not damaged counts."""

import os
import random

import pytest

from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.dataset import collect
from dlperf_study.dataset.run_table import run_diagnostics, run_row
from dlperf_study.records.run import read_run
from dlperf_study.study.plan import Plan
from tests.evidence_factory import Planned, change, configuration, edit_log, write_plan, write_run
from tests.records.damages import DamagedStudy

ASKED = configuration(devices_per_node=2)
#: So many of all damages are read, and so many collected; ``make fuzz`` collects any of them, and several at a time.
READ, COLLECTED = 200, 10
#: The lines of a log: the rank, and the third of its windows.
RANK, TRAINING = 0, 3


@pytest.fixture(scope="module")
def damaged_study(tmp_path_factory):
    return DamagedStudy(tmp_path_factory.mktemp("damaged"))


@pytest.fixture
def study(tmp_path):
    """Return the paths of three runs of one configuration, to be damaged."""
    paths = StudyPaths(tmp_path)
    for repetition in (1, 2, 3):
        write_run(paths, ASKED, repetition)
    write_plan(paths, [Planned(ASKED)])
    return paths


def not_counted(study):
    """Collect a study, of which one run must not count; return the one message that says why."""
    dataset = collect(study)
    assert (dataset.runs["status"] == "completed").sum() == 2
    diagnostics = dataset.diagnostics
    [message] = diagnostics["message"][diagnostics["severity"] == "error"]
    return message


def second_run(study):
    return study.configuration(ASKED.configuration_id).run(2)


def read(study):
    """Read what the tables of a study are made of, and none of the tables."""
    try:
        entries = Plan.read(study.plan_file).entries
    except RecordError:
        return
    for entry in entries:
        for paths in study.configuration(entry.configuration.configuration_id).runs():
            try:
                run = read_run(paths)
            except RecordError:
                continue
            run_row(run)
            run_diagnostics(run)


def test_damages_are_refused_and_never_crash(damaged_study):
    damages = random.Random(0).sample(damaged_study.damages, READ + COLLECTED)
    for number, damage in enumerate(damages):
        try:
            if number < READ:
                read(damaged_study.damaged([damage]))
            else:
                damaged_study.messages([damage])
        except Exception as error:
            pytest.fail(f"{damage}: {error!r}")


def test_an_intact_study_has_no_diagnostic_about_its_evidence(damaged_study):
    messages = damaged_study.messages([])
    assert [message for message in messages if message.startswith("not counted")] == []
    assert "failed, not counted: trainer-0 exited with code 1" in messages


@pytest.mark.parametrize(
    ("line", "values", "message"),
    [
        (RANK, {"host": "\ud800"}, r"rank-00001.jsonl: line 1: host is '\ud800', which is not text"),
        (TRAINING, {"step_seconds": "fast"}, "line 4: step_seconds is 'fast', which is not a list"),
    ],
)
def test_a_damaged_rank_log_is_one_diagnostic_and_the_other_runs_count(study, line, values, message):
    edit_log(second_run(study).rank_log(1), lambda lines: lines[line].update(values))
    assert message in not_counted(study)


def test_a_damaged_record_is_one_diagnostic_and_the_other_runs_count(study):
    change(second_run(study), environment=[])
    assert "run.json: environment is [], which is not a mapping" in not_counted(study)


@pytest.mark.parametrize("name", ["²", "٣", "0", "02", "9" * 30, os.fsdecode(b"\xff")])
def test_a_folder_that_is_no_repetition_is_one_diagnostic_and_the_other_runs_count(study, name):
    run = second_run(study).folder
    run.rename(run.with_name(name))
    message = not_counted(study)
    assert message.endswith(": not counted: a run's folder is named after its repetition, an integer from 1")
    assert "runs/" in message
