"""Horovod, on models built in PyTorch: gradients averaged by a background thread, gloo or NCCL underneath."""

import copy
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

from dlperf_study.core.user_commands import install_command, make_or
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.gpu_support import GpuSupport
from dlperf_study.study.job import Job
from dlperf_study.study.precision import LossScaling
from dlperf_study.training.frameworks import _horovod, _torch, _torch_training
from dlperf_study.training.frameworks._base import ClusterView, Framework, nccl_version
from dlperf_study.training.frameworks._torch_training import TorchTrainer

_GPU_REMEDY = make_or(
    "gpu TORCH_INDEX=ADDRESS && make horovod HOROVOD_GPU_OPERATIONS=NCCL",
    f"{_torch_training.GPU_REMEDY} && {install_command('horovod')} HOROVOD_GPU_OPERATIONS=NCCL",
)


def obstacles(configuration: Configuration, cluster: ClusterView, version: str | None) -> Iterator[str]:
    """Yield each reason why the configuration can't run here."""
    if configuration.classifier == "sharded":
        yield "a sharded classifier exchanges features by torch.distributed, which Horovod does not start"
    yield from _horovod.obstacles(configuration, cluster)
    yield from _torch_training.obstacles(configuration, cluster, version, _horovod.SETTINGS, library="horovod")


def job(configuration: Configuration, cluster: ClusterView) -> Job:
    """Return one ``horovodrun`` on the first node."""
    return _horovod.job(configuration, cluster, _torch_training.environment(configuration, cluster, 0))


def gpu_support() -> GpuSupport:
    """Return what the PyTorch below Horovod can do with GPUs; the NCCL is the one that Horovod was compiled with."""
    import horovod.torch as hvd

    return replace(_torch.gpu_support(), nccl=nccl_version(hvd.nccl_built()))


class HorovodTrainer(TorchTrainer):
    """One rank under Horovod's optimizer; alone, the plain one."""

    #: Horovod's own, and one of gloo that moves bytes.
    exchange_threads = 2
    #: Horovod refuses gradients that are not contiguous. cuDNN then orders the weights anew in every step.
    has_parameters_in_memory_format = False
    _gpu_support = staticmethod(gpu_support)

    def __init__(self, configuration: Configuration) -> None:
        _horovod.show_gpus_of_node(os.environ)
        import horovod.torch as hvd

        hvd.init()
        super().__init__(configuration, hvd.rank(), hvd.size(), hvd.local_rank())
        optimizer = _torch_training.optimizer(configuration, self._layer)
        if self.world_size == 1:
            self.train_step = self._step(self._layer, optimizer)
        else:
            compression = getattr(hvd.Compression, configuration.gradient_compression)
            names = self._layer.named_parameters()
            optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=names, compression=compression)
            self.train_step = self._step(self._layer, optimizer, update_when_exchanged)
        self.computation_step = self.train_step

    def description(self) -> dict[str, Any]:
        """Return the fields of the rank log, with the versions of Horovod and PyTorch."""
        import horovod

        inherited = super().description()
        version = f"{horovod.__version__} with torch {inherited['library_version']}"
        return inherited | {"library": "horovod", "library_version": version}

    @contextmanager
    def local_updates(self) -> Iterator[None]:
        """Make computation steps train a copy of the model, which is dropped afterwards.

        Horovod's hooks, which can't be switched off, stay with the original. Losses are scaled as before.
        """
        layer = copy.deepcopy(self._layer)
        if self._compiled:
            # A copy is not compiled; what was compiled for the original serves it too.
            self._compiled.compile(layer)
        self.computation_step = self._step(layer, _torch_training.optimizer(self._configuration, layer))
        self.computation_step.scaler.continue_from(self.train_step.scaler)
        yield
        self.computation_step = self.train_step

    def loss_scaling(self) -> LossScaling | None:
        """Return the state of loss scaling, or None without it; while updates are local, that of computation steps."""
        return self.computation_step.scaler.state()

    def exchange(self, size: int) -> Callable[[], None]:
        """Return what all-reduces buffers of the gradients' sizes; Horovod fuses them as it does in a step."""
        import horovod.torch as hvd

        # A name belongs to one shape: Horovod remembers what was negotiated about it.
        buffers = {f"exchange.{size}.{k}": buffer for k, buffer in enumerate(self._leading(self._buffers, size))}

        def exchange() -> None:
            handles = [hvd.allreduce_async_(buffer, name=name) for name, buffer in buffers.items()]
            for handle in handles:
                hvd.synchronize(handle)

        return exchange

    def barrier(self) -> None:
        """Wait for all ranks, each with its device idle."""
        import horovod.torch as hvd

        self._synchronise()
        hvd.barrier()

    def agreed_maximum(self, value: float) -> float:
        """Return the largest ``value`` of all ranks."""
        import horovod.torch as hvd
        import torch

        values = hvd.allgather(torch.tensor([value], dtype=torch.float64), name="agreed_maximum")
        return float(values.max())

    def close(self) -> None:
        """Wait for the others, then stop Horovod's thread."""
        import horovod.torch as hvd

        self.barrier()
        hvd.shutdown()

    @cached_property
    def _buffers(self) -> list[Any]:
        import torch

        compressed = self._configuration.gradient_compression == "fp16"
        number_format = torch.float16 if compressed else torch.float32
        return [torch.zeros_like(p, dtype=number_format) for p in _torch_training.replicated_parameters(self._layer)]


def update_when_exchanged(optimizer: Any, scaler: Any) -> None:
    """Update once all gradients have come back; it checks for infinite ones after the exchange, not before."""
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
    strategies=_torch_training.STRATEGIES,
    obstacles=obstacles,
    job=job,
    trainer=HorovodTrainer,
    further_packages=("torch",),
    environment_prefixes=(_horovod.ENVIRONMENT_PREFIX,),
    decided_variables=_horovod.DECIDED_VARIABLES,
    gpu_support=gpu_support,
    compilers=_torch_training.COMPILERS,
    gpu_remedy=_GPU_REMEDY,
    allocator=_torch.TorchAllocator,
    alone="torch",
)
