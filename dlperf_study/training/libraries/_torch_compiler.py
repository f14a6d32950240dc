"""The compiler of PyTorch, and in what what it compiles computes."""

import os
from pathlib import Path
from typing import Any

from dlperf_study.core.paths import RunPaths
from dlperf_study.study.configuration import Configuration
from dlperf_study.training.libraries import torch
from dlperf_study.training.libraries._base import Output, error_line

COMPILER = "torch_compile"
#: Operators that multiply and add most, as the compiler names them.
PRODUCTS = ("conv2d", "linear")
#: Where PyTorch's compiler keeps what it compiled.
CACHE_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"


def compiler_obstacle() -> str:
    """Return why PyTorch can't compile here, in its own words, or nothing: it needs a C++ compiler while it trains."""
    from torch._inductor.cpp_builder import get_cpp_compiler

    try:
        get_cpp_compiler()
    # It raises one of its own classes, which differ between versions.
    except Exception as error:
        return error_line(error)
    return ""


class CompiledFormats:
    """Compiles networks in place; ``outputs`` gets what is observed of each product in what is compiled.

    That is the graph which the compiler gets: on a GPU it may order features in memory as it likes.
    """

    def __init__(self) -> None:
        self.outputs: list[Output] = []

    def compile(self, layer: Any) -> None:
        """Make a layer compile at its first call.

        The layer with its loss: PyTorch silently compiles nothing in place of a ``Sequential``, which is its own code.
        """
        layer.compile(backend=self._compiled)

    def _compiled(self, graph: Any, inputs: list[Any]) -> Any:
        """Return what PyTorch's own compiler makes of a graph."""
        from torch._inductor.compile_fx import compile_fx

        for node in graph.graph.nodes:
            if getattr(node.target, "__name__", "") in PRODUCTS:
                self.outputs.append(torch.observed(node.meta["example_value"]))
        return compile_fx(graph, inputs)


def refuse_further_compilation() -> None:
    """Make PyTorch fail where it would compile again: that would be time of a window."""
    import torch

    torch._dynamo.config.error_on_recompile = True


def keep_compiled_code(configuration: Configuration, run_folder: str) -> None:
    """Let all ranks and runs of a configuration share what is compiled, in its folder.

    Where nodes do not share files, that is not there, and PyTorch's own folder on each node serves as well.
    """
    home = RunPaths(Path(run_folder)).home
    if home.folder.name == configuration.configuration_id:
        os.environ.setdefault(CACHE_VARIABLE, str(home.compiled))
