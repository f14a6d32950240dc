"""Horovod, on models built in PyTorch: gradients averaged by a background thread, gloo or NCCL underneath."""

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from dlperf_study.core.user_commands import install_command, make_or
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.gpu_support import GpuSupport
from dlperf_study.study.job import Job
from dlperf_study.study.precision import LossScaling
from dlperf_study.training.frameworks import _horovod, _torch
from dlperf_study.training.frameworks._base import ClusterView, Framework
from dlperf_study.training.frameworks._horovod import HorovodGroup
from dlperf_study.training.libraries import torch as torch_library
from dlperf_study.training.libraries._base import nccl_version
from dlperf_study.training.libraries._torch_steps import TrainingStep, plain_update

_GPU_REMEDY = make_or(
    "gpu TORCH_INDEX=ADDRESS && make horovod HOROVOD_GPU_OPERATIONS=NCCL",
    f"{_torch.GPU_REMEDY} && {install_command('horovod')} HOROVOD_GPU_OPERATIONS=NCCL",
)


def obstacles(configuration: Configuration, cluster: ClusterView, version: str | None) -> Iterator[str]:
    """Yield each reason why the configuration can't run here."""
    if configuration.classifier == "sharded":
        yield "a sharded classifier needs torch.distributed, which Horovod does not start"
    yield from _horovod.obstacles(configuration, cluster)
    yield from _torch.obstacles(configuration, cluster, version, _horovod.SETTINGS, library="horovod")


def job(configuration: Configuration, cluster: ClusterView) -> Job:
    """Return one ``horovodrun`` on the first node."""
    return _horovod.job(configuration, cluster, _torch.environment(configuration, cluster, 0))


def gpu_support() -> GpuSupport:
    """Return PyTorch's support of GPUs, with Horovod's NCCL."""
    import horovod.torch as hvd

    return replace(torch_library.gpu_support(), nccl=nccl_version(hvd.nccl_built()))


class HorovodTorchGroup(HorovodGroup):
    """All ranks with tensors of PyTorch."""

    def barrier(self) -> None:
        self._hvd.barrier()

    def maximum(self, value: float) -> float:
        import torch

        values = self._hvd.allgather(torch.tensor([value], dtype=torch.float64), name="agreed_maximum")
        return float(values.max())

    def all_reduce(self, tensors: Sequence[Any]) -> Callable[[], None]:
        # A name belongs to one shape: Horovod remembers what was negotiated about it.
        elements = sum(tensor.numel() for tensor in tensors)
        named = {f"exchange.{elements}.{index}": tensor for index, tensor in enumerate(tensors)}

        def communicate() -> None:
            handles = [self._hvd.allreduce_async_(tensor, name=name) for name, tensor in named.items()]
            for handle in handles:
                self._hvd.synchronize(handle)

        return communicate


class HorovodTrainer(_torch.TorchTrainer):
    """One rank under Horovod's optimizer; alone, the plain one."""

    #: Horovod refuses gradients that are not contiguous. cuDNN then orders the weights anew in every step.
    has_parameters_in_memory_format = False
    computation_step: TrainingStep

    def __init__(self, configuration: Configuration) -> None:
        _horovod.show_gpus_of_node(os.environ)
        import horovod.torch as hvd

        group = HorovodTorchGroup(hvd, gpu_support)
        super().__init__(configuration, group, hvd.local_rank())
        optimizer, update = self._optimizer(self.layer), plain_update
        if self.world_size > 1:
            compression = getattr(hvd.Compression, configuration.gradient_compression)
            names = self.layer.named_parameters()
            optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=names, compression=compression)
            update = update_when_communicated
        self.train_step = self.computation_step = self._step(self.layer, optimizer, update)

    def description(self) -> dict[str, Any]:
        import horovod

        inherited = super().description()
        version = f"{horovod.__version__} with torch {inherited['library_version']}"
        return inherited | {"library": "horovod", "library_version": version}

    @contextmanager
    def local_updates(self) -> Iterator[None]:
        """Make computation steps train a copy of the model."""
        # Horovod's hooks, which can't be switched off, stay with the original. Losses are scaled as before.
        layer = copy.deepcopy(self.layer)
        if self._compiled:
            # A copy is not compiled; what was compiled for the original serves it too.
            self._compiled.compile(layer)
        local_step = self._step(layer, self._optimizer(layer))
        local_step.scaler.continue_from(self.train_step.scaler)
        self.computation_step = local_step
        yield
        self.computation_step = self.train_step

    def loss_scaling(self) -> LossScaling | None:
        return self.computation_step.loss_scaling()

    def _optimizer(self, layer: Any) -> Any:
        return self._library.optimizer(self._library.trained_parameters(layer))


def update_when_communicated(optimizer: Any, scaler: Any) -> None:
    """Update after the communication, if gradients are finite."""
    if not scaler.is_enabled():
        optimizer.step()
        return
    optimizer.synchronize()
    scaler.unscale_(optimizer)
    with optimizer.skip_synchronize():
        scaler.step(optimizer)


FRAMEWORK = Framework(
    name="horovod_torch",
    display_name="Horovod (PyTorch)",
    library="horovod",
    packages=("horovod",),
    strategies=_torch.STRATEGIES,
    obstacles=obstacles,
    job=job,
    trainer=HorovodTrainer,
    further_packages=("torch",),
    environment_prefixes=(_horovod.ENVIRONMENT_PREFIX,),
    decided_variables=_horovod.DECIDED_VARIABLES,
    gpu_support=gpu_support,
    compilers=_torch.COMPILERS,
    gpu_remedy=_GPU_REMEDY,
    allocator=torch_library.TorchAllocator,
    alone="torch",
)
