"""Shared by the PyTorch frameworks: what they refuse, the environment of their ranks, the model on its device."""

import os
from collections.abc import Iterator
from typing import Any

from dlperf_study.core.user_commands import install_command, make_or
from dlperf_study.study.communication import ALL_REDUCE
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.environment_variables import VISIBLE_DEVICES
from dlperf_study.study.parallel_parameters import FULL_CHECKPOINTING, RECOMPUTATIONS
from dlperf_study.study.precision import REDUCED_PARAMETERS
from dlperf_study.training.frameworks import _obstacles, _processes
from dlperf_study.training.frameworks._base import RUN_VARIABLE, ClusterView
from dlperf_study.training.frameworks._obstacles import Compilers, Values
from dlperf_study.training.frameworks._trainer import CollectiveTrainer, Communication
from dlperf_study.training.libraries import _torch_steps
from dlperf_study.training.libraries import torch as torch_library
from dlperf_study.training.libraries._torch_steps import TrainingStep, Update

STRATEGIES = (ALL_REDUCE,)
COMPILERS: Compilers = {_torch_steps.COMPILER: _torch_steps.compiler_obstacle}
BUILT: Values = _obstacles.BUILT_FOR_LIBRARIES | {
    "strategy": STRATEGIES,
    "compiler": ("none", *COMPILERS),
    "optimizer": torch_library.OPTIMIZERS,
    "fused_optimizer": torch_library.FUSED_OPTIMIZERS,
    "gradient_compression": ("none", "fp16"),
    "activation_checkpointing": RECOMPUTATIONS,
}
_NO_O2 = "PyTorch's autocast keeps parameters in float32; only Paddle has the level O2"
REFUSED_PRECISIONS = {precision: f"precision {precision}: {_NO_O2}" for precision in REDUCED_PARAMETERS}
GPU_REMEDY = make_or("gpu TORCH_INDEX=ADDRESS", "pip install torch --index-url ADDRESS")


def obstacles(
    configuration: Configuration,
    cluster: ClusterView,
    version: str | None,
    settings: tuple[str, ...],
    built: Values = BUILT,
    library: str = "torch",
) -> Iterator[str]:
    """Yield why PyTorch can't run a configuration; ``library`` has this version."""
    yield from _obstacles.server_obstacles(configuration)
    yield from _obstacles.device_obstacles(configuration, cluster.device)
    if configuration.compiler != "none" and configuration.classifier == "sharded":
        yield f"compiler {configuration.compiler}: a sharded classifier communicates features within the compiled code"
    if configuration.activation_checkpointing == FULL_CHECKPOINTING:
        yield from _obstacles.image_obstacles(
            configuration, f"activation_checkpointing {configuration.activation_checkpointing}"
        )
    yield from _obstacles.missing_library(library, version, install_command(library))
    yield from _obstacles.unsuitable_parts(configuration, "torch", built, settings, REFUSED_PRECISIONS)


def environment(configuration: Configuration, cluster: ClusterView, node: int) -> dict[str, str]:
    """Return the environment of the ranks of a node."""
    variables = _processes.common_environment(configuration)
    variables |= _processes.tf32_environment(configuration, cluster.device)
    return variables | {VISIBLE_DEVICES: ""} | _processes.gpu_environment(cluster, node)


class TorchTrainer(CollectiveTrainer):
    """One rank with a model of PyTorch on its device; each framework adds how gradients travel."""

    #: Whether parameters, and so their gradients, have the memory format of images and features too.
    has_parameters_in_memory_format = True
    _library: torch_library.Torch
    train_step: TrainingStep

    def __init__(self, configuration: Configuration, communication: Communication, local_rank: int) -> None:
        library = torch_library.Torch(configuration, local_rank)
        super().__init__(configuration, library, communication)
        self.layer = library.built(self.rank, self.world_size)
        if self.has_parameters_in_memory_format:
            self.layer = self.layer.to(memory_format=library.memory_format)
        self._compiled: _torch_steps.CompiledFormats | None = None
        if configuration.compiler == _torch_steps.COMPILER:
            _obstacles.require_compiler(configuration, COMPILERS)
            _torch_steps.keep_compiled_code(configuration, os.environ[RUN_VARIABLE])
            self._compiled = _torch_steps.CompiledFormats()
            self._compiled.compile(self.layer)

    def _step(self, model: Any, optimizer: Any, update: Update = _torch_steps.plain_update) -> TrainingStep:
        kind = _torch_steps.AccumulatedStep if self._configuration.micro_batches > 1 else TrainingStep
        return kind(self._library, model, optimizer, update, self._compiled)
