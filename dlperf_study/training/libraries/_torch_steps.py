"""One step of training in PyTorch, whole or in micro-batches, the scaling of its loss, and what compiles it."""

import io
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from dlperf_study.core.errors import RunError
from dlperf_study.core.paths import RunPaths
from dlperf_study.core.wording import counted
from dlperf_study.study import precision
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.parallel_parameters import SHARDED_PARAMETERS
from dlperf_study.training.libraries import _base, torch
from dlperf_study.training.libraries._base import Output, error_line
from dlperf_study.training.libraries.torch import Torch

COMPILER = "torch_compile"
#: Operators that multiply and add most, as the compiler names them.
PRODUCTS = ("conv2d", "linear")
#: Where PyTorch's compiler keeps what it compiled.
CACHE_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"


def compiler_obstacle() -> str:
    """Return why no C++ compiler works here, or nothing."""
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
        """Make a layer compile at its first call."""
        # The layer with its loss: PyTorch silently compiles nothing in place of a ``Sequential``, which is its own
        # code.
        layer.compile(backend=self._compiled)

    def _compiled(self, graph: Any, inputs: list[Any]) -> Any:
        """Return what PyTorch's own compiler makes of a graph."""
        from torch._inductor.compile_fx import compile_fx

        for node in graph.graph.nodes:
            if getattr(node.target, "__name__", "") in PRODUCTS:
                self.outputs.append(torch.observed(node.meta["example_value"]))
        return compile_fx(graph, inputs)


def refuse_further_compilation() -> None:
    """Make PyTorch fail where it would compile in a window."""
    import torch

    torch._dynamo.config.error_on_recompile = True


def keep_compiled_code(configuration: Configuration, run_folder: str) -> None:
    """Let all runs of a configuration share compiled code."""
    # Where nodes do not share files, that is not there, and PyTorch's own folder on each node serves as well.
    home = RunPaths(Path(run_folder)).home
    if home.folder.name == configuration.configuration_id:
        os.environ.setdefault(CACHE_VARIABLE, str(home.compiled))


Update = Callable[[Any, Any], None]


def plain_update(optimizer: Any, scaler: Any) -> None:
    """Update by gradients that need no communication any more."""
    scaler.step(optimizer)


class TrainingStep:
    """Forward, backward and update of one batch, in the precision of the configuration.

    ``compiled``: what compiles the model, if something does.
    """

    def __init__(
        self,
        library: Torch,
        model: Any,
        optimizer: Any,
        update: Update = plain_update,
        compiled: CompiledFormats | None = None,
    ) -> None:
        self.optimizer = optimizer
        self._model, self._update, self._compiled = model, update, compiled
        self.scaler = LossScaler(library, optimizer)
        self._autocast = library.autocast()
        self._held_bytes: dict[str, int] = {}

    def __call__(self, batch: tuple[Any, ...]) -> Any:
        loss = self._gradients(batch)
        self._update(self.optimizer, self.scaler.scaler)
        self.scaler.update()
        self.optimizer.zero_grad()
        return loss

    def without_update(self, batch: tuple[Any, ...]) -> None:
        """Make the gradients of a batch, and forget them."""
        self._gradients(batch)
        self.optimizer.zero_grad()

    def observed(self, batch: tuple[Any, ...], layer: Any) -> tuple[list[Output], dict[str, int]]:
        """Do the first step; return outputs and held bytes."""
        # Of a compiled network the outputs are those that were compiled: a hook would become part of what is compiled.
        observation = self.optimizer.register_step_post_hook(self._observe_update)
        if self._compiled:
            self(batch)
            refuse_further_compilation()
            outputs = self._compiled.outputs
        else:
            with torch.observed_outputs(layer) as outputs:
                self(batch)
        observation.remove()
        return outputs, self._held_bytes

    def update_kernels(self) -> dict[str, str]:
        return {"fused_optimizer": torch.optimizer_kernels(self.optimizer)}

    def loss_scaling(self) -> precision.LossScaling | None:
        return self.scaler.state()

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Take back what steps change, at the end; it is kept on the host."""
        from torch import load, save

        parts, states = (self._model, torch.own_optimizer(self.optimizer), self.scaler.scaler), io.BytesIO()
        save([part.state_dict() for part in parts], states)
        yield
        states.seek(0)
        for part, state in zip(parts, load(states, map_location="cpu"), strict=True):
            part.load_state_dict(state)

    def _gradients(self, batch: tuple[Any, ...], share: int = 1) -> Any:
        """Add the gradients of one of ``share`` parts; return its loss."""
        with self._autocast():
            loss = self._model(*batch)
            # A whole batch has no kernel for the division.
            loss = loss / share if share > 1 else loss
        self.scaler.scaler.scale(loss).backward()
        return loss.detach()

    def _observe_update(self, optimizer: Any, *_: Any) -> None:
        """Observe what is held; raises RunError for untrained parameters."""
        parameters = [parameter for group in self.optimizer.param_groups for parameter in group["params"]]
        without = sum(parameter.grad is None for parameter in parameters)
        if without:
            of_all = counted(len(parameters), "parameter")
            raise RunError(f"{without} of {of_all} got no gradient and are not trained")
        self._held_bytes = torch.held_bytes(parameters, torch.own_optimizer(optimizer))


class AccumulatedStep(TrainingStep):
    """The same for the parts of a batch one after the other: their gradients are communicated with the last."""

    def __init__(self, library: Torch, *details: Any) -> None:
        super().__init__(library, *details)
        self._micro_batches = library.configuration.micro_batches
        self._gathers_once = library.configuration.zero_stage == SHARDED_PARAMETERS

    def _gradients(self, batch: tuple[Any, ...], share: int = 1) -> Any:
        """Add the gradients of all parts; return the mean loss."""
        parts = list(zip(*(tensor.chunk(self._micro_batches) for tensor in batch), strict=True))
        losses: list[Any] = []
        for part in parts:
            with self._communicating(len(losses) == len(parts) - 1):
                losses.append(super()._gradients(part, share=len(parts)))
        return sum(losses)

    def _communicating(self, is_last: bool) -> AbstractContextManager[None]:
        """Return the context of a part; the last communicates."""
        if hasattr(self._model, "set_requires_gradient_sync"):
            self._model.set_requires_gradient_sync(is_last)
            if self._gathers_once:
                self._model.set_reshard_after_backward(is_last)
            return nullcontext()
        context: AbstractContextManager[None] = nullcontext()
        if not is_last and hasattr(self._model, "no_sync"):
            context = self._model.no_sync()
        return context


class LossScaler:
    """Scales the loss as a configuration asks, and counts the steps that updated nothing."""

    def __init__(self, library: Torch, optimizer: Any) -> None:
        from torch.amp import GradScaler

        scaling = library.configuration.loss_scaling
        self._static = scaling == "static"
        self._skipped_steps, self._has_updated = 0, False
        #: A fused update looks itself whether gradients are finite; to ask the device in every step would be a wait.
        self._found_infinite: Any = 0
        self._skipped_by_kernels: Any = 0
        scale = _base.FIRST_LOSS_SCALES[scaling]
        options = {"growth_interval": _base.GROWTH_STEPS, "enabled": scaling != "none"}
        self.scaler = GradScaler(library.device.type, scale, **options)
        # The scaler leaves the optimizer's step out when a gradient is not finite.
        optimizer.register_step_post_hook(self._note_update)

    def continue_from(self, other: "LossScaler") -> None:
        """Begin with the scale of another one."""
        self.scaler.load_state_dict(other.scaler.state_dict())

    def update(self) -> None:
        """End a step: adapt the scale unless it is constant."""
        self._skipped_steps += not self._has_updated
        self._skipped_by_kernels = self._skipped_by_kernels + self._found_infinite
        self._has_updated, self._found_infinite = False, 0
        if self._static:
            self.scaler.update(_base.STATIC_LOSS_SCALE)
        else:
            self.scaler.update()

    def state(self) -> precision.LossScaling | None:
        """Return the state of loss scaling, or None."""
        if not self.scaler.is_enabled():
            return None
        skipped = self._skipped_steps + int(self._skipped_by_kernels)
        return precision.LossScaling(self.scaler.get_scale(), skipped)

    def _note_update(self, optimizer: Any, *_: Any) -> None:
        self._has_updated = True
        self._found_infinite = getattr(optimizer, "found_inf", 0)
