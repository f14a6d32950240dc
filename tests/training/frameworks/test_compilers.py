"""Networks that are compiled before they train: they train the same, and what was compiled says in what it computes."""

import os
import re
import sys
from collections.abc import Sequence

import pytest

from dlperf_study.core.errors import UnsupportedError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.execution.libraries import compiler_obstacle_here
from dlperf_study.machines.cluster.software import library_answer
from dlperf_study.training.frameworks._base import RUN_VARIABLE
from dlperf_study.training.frameworks._obstacles import require_compiler
from dlperf_study.training.libraries import _torch_steps
from dlperf_study.training.libraries._base import Output
from dlperf_study.training.models._torch_layers import cross_entropy_module
from dlperf_study.training.questions import ANSWERS
from dlperf_study.training.questions import MODULE as QUESTIONS
from tests.command_line import LIMIT_SECONDS
from tests.training.frameworks.launching import CLUSTER, configuration, logs_of

TORCH = {"framework": "torch_ddp", "compiler": "torch_compile"}


@pytest.mark.timeout(LIMIT_SECONDS)
def test_two_ranks_of_a_static_graph_train_alike(tmp_path):
    """The same losses as without: of one step after the other, which the first steps and the warm-up precede."""
    losses = {}
    for compiler in ("none", "to_static"):
        requested = configuration(
            devices_per_node=2, compiler=compiler, compute_only_steps=2, communication_only_steps=2
        )
        one, two = logs_of(requested, tmp_path / compiler)
        assert one.end["parameter_checksum"] == two.end["parameter_checksum"] != one.end["initial_checksum"]
        assert one.facts["computed_in"] == two.facts["computed_in"] == "float32"
        losses[compiler] = one.windows["training"].losses.tolist()
        assert one.facts["first_steps"] == 1
        assert one.facts["first_steps_seconds"] > 0
    assert losses["to_static"] == pytest.approx(losses["none"], rel=1e-3)


@pytest.mark.needs("torch")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_is_compiled_tells_its_number_format(monkeypatch):
    """Compiling takes minutes on a CPU, so the graph is run as it is: the number formats are those of the graph."""
    import torch

    monkeypatch.setattr("torch._inductor.compile_fx.compile_fx", lambda graph, inputs: graph.forward)
    formats = _torch_steps.CompiledFormats()
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 3), torch.nn.Flatten(), torch.nn.Linear(72, 2))
    layer = cross_entropy_module(network)
    formats.compile(layer)
    labels = torch.zeros(1, dtype=torch.int64)
    with torch.autocast("cpu", torch.bfloat16):
        layer(torch.ones(1, 3, 8, 8), labels)
    assert formats.outputs == [Output("bfloat16", "nchw"), Output("bfloat16")]
    monkeypatch.setattr("torch._dynamo.config.error_on_recompile", False)
    _torch_steps.refuse_further_compilation()
    with pytest.raises(torch._dynamo.exc.RecompileError):
        layer(torch.ones(1, 3, 8, 8), labels)
    torch._dynamo.reset()


@pytest.mark.needs("torch")
def test_without_a_compiler_of_c_the_reason_is_the_librarys_own(monkeypatch):
    from torch._inductor import cpp_builder

    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr("torch._inductor.config.cpp.cxx", (None, "no-such-compiler"))
    cpp_builder.cpp_compiler_search.cache_clear()
    with pytest.raises(UnsupportedError, match=r"compiler torch_compile: .*no-such-compiler"):
        require_compiler(configuration(**TORCH), {"torch_compile": _torch_steps.compiler_obstacle})


def test_cinn_is_refused_where_the_wheel_does_not_have_it():
    reason = ANSWERS["compiler"]("paddle_collective", "cinn")
    assert re.fullmatch(r"paddlepaddle 3\..* is built without CINN .*", reason)
    assert compiler_obstacle_here(configuration(compiler="to_static"), CLUSTER) == ""


def test_a_library_answers_in_the_python_that_trains(monkeypatch):
    commands: list[Sequence[str]] = []
    monkeypatch.setattr(
        "dlperf_study.execution.libraries.library_answer",
        lambda command, variables: commands.append(command) or "no compiler",
    )
    assert compiler_obstacle_here(configuration(compiler="cinn"), CLUSTER) == "compiler cinn: no compiler"
    assert commands == [(sys.executable, "-m", QUESTIONS, "compiler", "paddle_collective", "cinn")]


def test_a_library_is_asked_once_for_each_environment(tmp_path):
    count = tmp_path / "count"
    command = (sys.executable, "-c", f"open({str(count)!r}, 'a').write('x'); print('null')")
    for variables in ({}, {}, {"A": "1"}):
        assert library_answer(command, {"PATH": os.environ["PATH"]} | variables) is None
    assert count.read_text() == "xx"


@pytest.mark.needs("torch")
def test_ranks_and_runs_of_a_configuration_share_what_is_compiled(tmp_path, monkeypatch):
    requested = configuration(**TORCH)
    home = StudyPaths(tmp_path).configuration(requested.configuration_id)
    for folder, cache in ((home.run(2).folder, str(home.compiled)), (tmp_path / "node" / "run", None)):
        monkeypatch.delenv(_torch_steps.CACHE_VARIABLE, raising=False)
        monkeypatch.setenv(RUN_VARIABLE, str(folder))
        _torch_steps.keep_compiled_code(requested, os.environ[RUN_VARIABLE])
        assert os.environ.get(_torch_steps.CACHE_VARIABLE) == cache
