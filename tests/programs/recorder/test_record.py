"""The recorder in real programs: what they leave is what the package reads."""

import ast
import typing

import pytest

from dlperf_study import record
from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import PROJECT
from dlperf_study.records import lines as declared
from dlperf_study.records.lines import RecordedBy
from dlperf_study.records.rank_agreement import program_diagnostics
from dlperf_study.records.rank_log import read_rank_log
from tests.programs.recorder.programs import DDP, PADDLE, PLAIN, lines, run

needs_torch = pytest.mark.needs("torch")


def logs_of(folder, ranks=2):
    return [read_rank_log(folder / f"rank-{rank:05d}.jsonl") for rank in range(ranks)]


def test_a_plain_program_leaves_its_steps_inputs_losses_and_counts_as_they_are_declared(tmp_path):
    done = run(tmp_path, PLAIN, "-1")
    assert done.stdout.split() == ["9"], done.stderr
    log = read_rank_log(tmp_path / "rank-00000.jsonl")
    training = log.windows["training"]
    assert (log.recorded_by, log.facts["communication"], training.steps) == (RecordedBy.RECORDER, "none", 6)
    assert (training.step_seconds >= 0.001).all()
    assert training.has_input
    assert (training.input_seconds < training.step_seconds / 2).all()
    assert training.losses.tolist() == [1 / step for step in range(4, 10)]
    assert training.samples.tolist() == [3] * 6
    assert training.tokens.tolist() == list(range(3, 9))
    first, window, *_, last = lines(tmp_path)
    assert first.keys() <= typing.get_type_hints(declared.ProgramRankLine).keys()
    assert window.keys() <= {"kind", *typing.get_type_hints(declared.MeasuredWindow)}
    assert last.keys() <= typing.get_type_hints(declared.ProgramEndLine).keys()
    assert declared.FORMAT == record.FORMAT


def test_a_program_that_ends_early_says_how_far_it_came(tmp_path):
    run(tmp_path, PLAIN, "4")
    last = lines(tmp_path)[-1]
    assert (last["steps"], last["requested"]) == (4, 9)
    with pytest.raises(RecordError, match="4 of 9"):
        read_rank_log(tmp_path / "rank-00000.jsonl")


def test_it_is_syntax_of_python_3_8_and_of_the_standard_library_alone():
    source = (PROJECT / "dlperf_study" / "record.py").read_text()
    tree = ast.parse(source, feature_version=(3, 8))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name for name in imported if name.startswith("dlperf_study")}


@pytest.mark.matrix
def test_a_model_of_paddle_has_digests_and_losses(tmp_path):
    done = run(tmp_path, PADDLE)
    assert done.returncode == 0, done.stderr
    log = read_rank_log(tmp_path / "rank-00000.jsonl")
    assert (log.facts["library"], log.facts["parameters"]) == ("paddle", 36)
    losses = log.windows["training"].losses
    assert (losses[1:] < losses[:-1]).all()
    assert not list(program_diagnostics([log]))


@needs_torch
@pytest.mark.matrix
def test_ranks_of_ddp_measure_steps_without_exchange_and_agree_afterwards(tmp_path):
    done = run(tmp_path, DDP, "model", ranks=2, compute_only_steps=5)
    assert done.returncode == 0, done.stderr
    logs = logs_of(tmp_path)
    for log in logs:
        steps = {name: window.steps for name, window in log.windows.items()}
        assert steps == {"warmup": 2, "computation_before": 2, "training": 6, "computation_after": 3}
        assert (log.facts["parameters"], log.facts["gradient_bytes"]) == (64 * 65, 64 * 65 * 4)
        # Parameters and both moments of Adam, and its count of steps for each of two tensors.
        assert log.end["copied_bytes"] == 3 * 64 * 65 * 4 + 2 * 4
    assert logs[0].end["parameter_checksum"] == logs[1].end["parameter_checksum"]
    assert logs[0].end["parameter_checksum"] != logs[0].end["initial_checksum"]
    assert list(program_diagnostics(logs)) == []


@needs_torch
@pytest.mark.matrix
@pytest.mark.parametrize(("mode", "subjects"), [("no model", 3), ("switches", 1)])
def test_what_hinders_steps_without_exchange_is_a_diagnostic(tmp_path, mode, subjects):
    done = run(tmp_path, DDP, mode, ranks=2, compute_only_steps=4)
    assert done.returncode == 0, done.stderr
    logs = logs_of(tmp_path)
    assert [list(log.windows) for log in logs] == [["warmup", "training"]] * 2
    diagnostics = [diagnostic.subject for diagnostic in program_diagnostics(logs)]
    assert len(diagnostics) == subjects
    assert diagnostics[-1] == "compute_seconds"


@needs_torch
@pytest.mark.matrix
def test_a_crash_on_one_rank_leaves_how_far_it_came(tmp_path):
    done = run(tmp_path, DDP, "crash", ranks=2)
    assert done.returncode != 0
    last = lines(tmp_path, rank=1)[-1]
    assert (last["kind"], last["steps"], last["reason"]) == ("incomplete", 5, "ValueError")
