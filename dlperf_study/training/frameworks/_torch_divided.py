"""A rank that divides a model, or the state of its training, with other ranks: its collectives are of several kinds.

The groups of ranks of a layout are, in PyTorch, a device mesh of the dimensions that have several ranks.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.study.layout import DIMENSIONS, Dimension, Layout
from dlperf_study.training.frameworks import _torch
from dlperf_study.training.frameworks._obstacles import Levels
from dlperf_study.training.frameworks._processes import collective_seconds
from dlperf_study.training.frameworks.torch_ddp import DataParallelTrainer

#: What is built of every strategy that divides a model; each has a ``strategy`` of its own.
LEVELS: Levels = _torch.LEVELS | {
    "precision": ("fp32", "tf32", "amp_bf16"),
    "loss_scaling": ("none",),
    "compiler": ("none",),
    "gradient_compression": ("none",),
    "classifier": ("replicated",),
}


class DividedTrainer(DataParallelTrainer):
    """One rank whose communication is ``COLLECTIVES``; alone, the plain model. They are observed in the first step."""

    #: Parameters that are divided must be contiguous.
    has_parameters_in_memory_format = False

    def __init__(self, configuration: Configuration) -> None:
        self._whole_checksum = self._first_checksum = ""
        self._whole_sizes: dict[str, Any] = {}
        super().__init__(configuration)
        self.observe_collectives()

    def description(self) -> dict[str, Any]:
        """Return the fields of the rank log; parameters and gradients are those of the whole model."""
        return super().description() | self._whole_sizes

    def first_step(self, batch: tuple[Any, ...]) -> str:
        """Do the first step, and observe its collectives; see ``CollectiveTrainer``."""
        self._distribute_gradients(batch)
        return super().first_step(batch)

    def _distribute_gradients(self, batch: tuple[Any, ...]) -> None:
        """Let ``DistributedDataParallel`` distribute gradients as in all later steps, where it wraps the model.

        At first it communicates all at once. In its second pass the ranks agree on several buffers, in the order in
        which the gradients of the first one were ready.
        """
        import torch

        if not hasattr(self.model, "reducer"):
            return
        own_devices = [self._library.device] if self._library.uses_gpu() else []
        with torch.random.fork_rng(own_devices):
            for _ in range(2):
                self.train_step.without_update(batch)

    def parameter_checksum(self) -> str:
        """Return a digest of the parameters; of divided ones, of this rank's part once it has changed.

        Before that, it is the digest of the whole model: ranks must divide the same one, which nobody sends to all.
        """
        if not self._whole_checksum:
            return super().parameter_checksum()
        digest = self._checksum(self._trained_parameters())
        return self._whole_checksum if digest == self._first_checksum else digest

    def _trained_parameters(self) -> list[Any]:
        """Return what this rank trains, of divided parameters its part of them."""
        return self._library.trained_parameters(self.layer)

    @contextmanager
    def _dividing(self) -> Iterator[None]:
        """Keep digest and sizes of the whole model before it is divided, and the digest of this rank's part after."""
        description = super().description()
        self._whole_sizes = {name: description[name] for name in ("parameters", "gradient_bytes")}
        self._whole_checksum = super().parameter_checksum()
        yield
        self._first_checksum = self._checksum(self._trained_parameters())


def device_mesh(layout: Layout, device: Any) -> Any:
    """Return the mesh of the dimensions with several ranks, by their names, the outermost first.

    Every rank of the job must call it, after the ranks have met. ``mesh["tensor"].get_group()`` is the group of this
    rank in a dimension; a dimension of one rank has none.
    """
    import torch
    from torch.distributed.device_mesh import DeviceMesh

    names = [name for name in DIMENSIONS if getattr(layout, name) > 1]
    ranks = torch.arange(layout.devices).view([getattr(layout, name) for name in names])
    groups = [_own_group(layout, name) for name in names]
    return DeviceMesh.from_group(groups, device.type, ranks, mesh_dim_names=tuple(names))


def forget_groups(mesh: Any) -> None:
    """Let groups end with the training: PyTorch keeps meshes to the end of Python, where threads of gloo can abort it.

    No collective of the mesh can be done after this.
    """
    mesh._pg_registry.clear()


def _own_group(layout: Layout, dimension: Dimension) -> Any:
    """Return the group of this rank in a dimension. All ranks make all groups, in one order, as PyTorch requires."""
    import torch.distributed as dist

    limit, own_group = timedelta(seconds=collective_seconds()), None
    for ranks in layout.groups(dimension):
        if len(ranks) == layout.devices:
            return dist.group.WORLD
        group = dist.new_group(ranks, timeout=limit, group_desc=dimension)
        own_group = group if dist.get_rank() in ranks else own_group
    return own_group
