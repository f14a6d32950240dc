"""PyTorch's data parallelism, ``DistributedDataParallel``: gloo between CPUs, NCCL between GPUs."""

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from dlperf_study.core.errors import RunError
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.gpu_support import GpuSupport
from dlperf_study.study.job import Job, Task, TaskRole
from dlperf_study.training.frameworks import _obstacles, _processes, _torch
from dlperf_study.training.frameworks._base import ClusterView, Framework
from dlperf_study.training.frameworks._trainer import Communication, one_by_one
from dlperf_study.training.libraries import _torch_steps
from dlperf_study.training.libraries import torch as torch_library
from dlperf_study.training.libraries._base import Buffer

#: The files of the launcher below its log folder: one folder per attempt and rank, one file per stream.
RANK_OUTPUT = r"ranks-of-(?P<node>node-\d+)/.*/attempt_0/(?P<rank>\d+)/(?P<stream>stdout|stderr)\.log"


def obstacles(configuration: Configuration, cluster: ClusterView, version: str | None) -> Iterator[str]:
    """Yield each reason why the configuration can't run here."""
    if not configuration.fusion_mib:
        yield "fusion_mib is 0, but DistributedDataParallel always fuses (any other number is its bucket_cap_mb)"
    yield from _obstacles.micro_batch_obstacles(configuration)
    yield from _torch.obstacles(configuration, cluster, version, settings=("fusion_mib", "micro_batches"))


def job(configuration: Configuration, cluster: ClusterView) -> Job:
    """Return one ``torchrun`` per node for its ranks.

    ``--max-restarts 0``: a rank restarted unnoticed would be averaged into the result.
    """
    python = cluster.python_for(configuration.framework)
    tasks: list[Task] = []
    for node in range(configuration.nodes):
        argv = (
            *(python, "-m", "torch.distributed.run"),
            *("--nnodes", str(configuration.nodes), "--node-rank", str(node)),
            *("--nproc-per-node", str(configuration.devices_per_node)),
            *("--master-addr", "{host_0}", "--master-port", "{port_0}", "--max-restarts", "0"),
            *("--log-dir", f"{{run}}/scratch/ranks-of-node-{node}", "--redirects", "3"),
            *("-m", "dlperf_study.training.worker"),
        )
        environment = _torch.environment(configuration, cluster, node)
        environment |= _processes.network_environment(configuration, cluster, node)
        tasks.append(Task(f"node-{node}", TaskRole.TRAINER, node, argv, environment))
    gpus = _processes.gpus_per_node(configuration, cluster)
    return Job(tuple(tasks), nodes=configuration.nodes, ports=1, rank_output=RANK_OUTPUT, gpus_per_node=gpus)


class TorchGroup(Communication):
    """All ranks, which have met by ``torch.distributed``."""

    #: One that moves bytes and two that reduce.
    threads = 3

    def barrier(self) -> None:
        import torch.distributed as dist

        dist.barrier()

    def maximum(self, value: float) -> float:
        import torch
        import torch.distributed as dist

        device = "cuda" if dist.get_backend() == "nccl" else "cpu"
        maximum = torch.tensor([value], dtype=torch.float64, device=device)
        dist.all_reduce(maximum, op=dist.ReduceOp.MAX)
        return float(maximum)

    def all_reduce(self, tensors: Sequence[Any]) -> Callable[[], None]:
        import torch.distributed as dist

        return one_by_one(dist.all_reduce, tensors)

    def gpu_support(self) -> GpuSupport:
        return torch_library.gpu_support()

    def leave(self) -> None:
        """End the threads of the communication. A thread of gloo that lives when Python ends can abort it."""
        # It ends with the last reference to its group.
        import torch.distributed as dist

        if self.ranks > 1:
            gc.collect()
            dist.destroy_process_group()


class DataParallelTrainer(_torch.TorchTrainer):
    """One rank under ``DistributedDataParallel``; alone, the plain model."""

    def __init__(self, configuration: Configuration) -> None:
        rank, world_size, local_rank = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
        if world_size > 1:
            _join(rank, world_size)
        super().__init__(configuration, TorchGroup(rank, world_size), local_rank)
        self.model = self._parallel() if world_size > 1 else self.layer
        self.train_step = self.computation_step = self._step(self.model, self._optimizer(), self._update)

    def _optimizer(self) -> Any:
        return self._library.optimizer(torch_library.trained(self.layer))

    def _update(self, optimizer: Any, scaler: Any) -> None:
        _torch_steps.plain_update(optimizer, scaler)

    def _parallel(self) -> Any:
        """Return the layer wrapped."""
        # Statistics of batch norm stay with each rank, as they do in Paddle and Horovod; by default rank 0's would be
        # sent to all others in every step.
        from torch.nn.parallel import DistributedDataParallel

        shard = [name for name, p in self.layer.named_parameters() if getattr(p, "no_sync", False)]
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(self.layer, shard)
        fused = {} if self._configuration.fusion_mib < 0 else {"bucket_cap_mb": self._configuration.fusion_mib}
        model = DistributedDataParallel(self.layer, forward_sync_buffers=False, **fused)
        if self._configuration.gradient_compression == "fp16":
            from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

            model.register_comm_hook(None, fp16_compress_hook)
        return model

    def _buffers(self) -> list[Buffer]:
        """Return the buffers after the first step."""
        buckets = self.model.reducer._get_zeros_like_grad_buckets()
        return [self._library.buffer(bucket.buffer()) for bucket in buckets]

    def _forget(self) -> None:
        """Drop the model, which refers to the group."""
        if self.world_size > 1:
            del self.model, self.train_step, self.computation_step


def _join(rank: int, world_size: int) -> None:
    """Meet the other ranks; raises RunError when one is missing."""
    # Ranks that have met may take less long for a collective than they took to start.
    import torch
    import torch.distributed as dist

    # Imported by DistributedDataParallel, when there is a group, it would keep that group to the end of Python.
    import torch.distributed.nn
    from torch.distributed.rendezvous import rendezvous

    limit = timedelta(seconds=_processes.meet_seconds())
    keys = [f"rank {position}" for position in range(world_size)]
    try:
        store, _, _ = next(rendezvous("env://", timeout=limit))
        store.set(keys[rank], "is here")
        store.wait(keys, limit)
    except RuntimeError as error:
        allowed = f"{limit.total_seconds():g} s, which is {_processes.MEET_KEY}"
        raise RunError(f"the ranks did not meet; they may take {allowed}: {str(error).splitlines()[0]}") from error
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    timeout = timedelta(seconds=_processes.collective_seconds())
    dist.init_process_group(backend, store=store, rank=rank, world_size=world_size, timeout=timeout)


FRAMEWORK = Framework(
    name="torch_ddp",
    display_name="PyTorch DDP",
    library="torch",
    packages=("torch",),
    strategies=_torch.STRATEGIES,
    obstacles=obstacles,
    job=job,
    trainer=DataParallelTrainer,
    gpu_support=torch_library.gpu_support,
    compilers=_torch.COMPILERS,
    gpu_remedy=_torch.GPU_REMEDY,
    allocator=torch_library.TorchAllocator,
    alone="torch",
)
