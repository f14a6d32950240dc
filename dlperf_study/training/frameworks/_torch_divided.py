"""A rank that divides a model, or the state of its training, with other ranks: its collectives are of several kinds.

The groups of ranks of a layout are, in PyTorch, a device mesh of the dimensions that have several ranks.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from dlperf_study.core.errors import RunError
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.exchange import COLLECTIVES, CollectiveKind
from dlperf_study.study.layout import DIMENSIONS, Dimension, Layout
from dlperf_study.training.frameworks import _torch, _torch_training, _training
from dlperf_study.training.frameworks._collectives import Collective, StepCollectives
from dlperf_study.training.frameworks._obstacles import Levels
from dlperf_study.training.frameworks._processes import collective_seconds
from dlperf_study.training.frameworks._torch_collectives import observed_collectives, replayed
from dlperf_study.training.frameworks.torch_ddp import DataParallelTrainer

#: What is built of every strategy that divides a model; each has a ``strategy`` of its own.
LEVELS: Levels = _torch_training.LEVELS | {
    "precision": ("fp32", "tf32", "amp_bf16"),
    "loss_scaling": ("none",),
    "compiler": ("none",),
    "gradient_compression": ("none",),
    "classifier": ("replicated",),
}


class DividedTrainer(DataParallelTrainer):
    """One rank whose exchange is ``COLLECTIVES``; alone, the plain model. They are observed in the first step.

    ``computation_obstacle``: why no step can be done without its exchange; empty if one can.
    """

    #: Parameters that are divided must be contiguous.
    has_parameters_in_memory_format = False
    computation_obstacle = ""

    def __init__(self, configuration: Configuration) -> None:
        self._collectives = StepCollectives(configuration.layout, observed_collectives, self._replayed)
        self._whole_checksum = self._first_checksum = ""
        self._whole_sizes: dict[str, Any] = {}
        super().__init__(configuration)
        if self.world_size > 1:
            self.exchange_kind = COLLECTIVES

    def description(self) -> dict[str, Any]:
        """Return the fields of the rank log; parameters and gradients are those of the whole model."""
        return super().description() | self._whole_sizes

    def first_step(self, batch: tuple[Any, ...]) -> str:
        """Do the first step, and observe its collectives; see ``TorchTrainer``."""
        self._distribute_gradients(batch)
        with self._collectives.observed():
            return super().first_step(batch)

    def _distribute_gradients(self, batch: tuple[Any, ...]) -> None:
        """Let ``DistributedDataParallel`` distribute gradients as in all later steps, where it wraps the model.

        At first it exchanges all at once. In its second pass the ranks agree on several buffers, in the order in which
        the gradients of the first one were ready.
        """
        import torch

        if not hasattr(self._model, "reducer"):
            return
        own_devices = [self._device] if self._device.type == "cuda" else []
        with torch.random.fork_rng(own_devices):
            for _ in range(2):
                self.train_step.without_update(batch)

    def observations(self) -> dict[str, Any]:
        """Return what was observed of the first step: what it exchanges, and which bytes this rank holds."""
        if self.world_size == 1:
            return super().observations()
        return super().observations() | {"exchanges": self._collectives.lines()}

    def exchange_alone(self, kind: CollectiveKind | None = None, group: str | None = None) -> Callable[[], None]:
        """Return what does the collectives of a step, of one kind, of one group, or all, with nothing to hide them."""
        return self._collectives.alone(kind, group)

    def exchange(self, size: int) -> Callable[[], None]:
        """Return what does all collectives of a step; ``size`` is that of all."""
        return self._collectives.alone()

    @contextmanager
    def local_updates(self) -> Iterator[None]:
        """Keep steps from exchanging; raises RunError where they can't be done so."""
        if self.computation_obstacle:
            raise RunError(self.computation_obstacle)
        with super().local_updates():
            yield

    def parameter_checksum(self) -> str:
        """Return a digest of the parameters; of divided ones, of this rank's part once it has changed.

        Before that, it is the digest of the whole model: ranks must divide the same one, which nobody sends to all.
        """
        if not self._whole_checksum:
            return super().parameter_checksum()
        digest = self._checksum_of_part()
        return self._whole_checksum if digest == self._first_checksum else digest

    @contextmanager
    def _dividing(self) -> Iterator[None]:
        """Keep digest and sizes of the whole model before it is divided, and the digest of this rank's part after."""
        description = super().description()
        self._whole_sizes = {name: description[name] for name in ("parameters", "gradient_bytes")}
        self._whole_checksum = super().parameter_checksum()
        yield
        self._first_checksum = self._checksum_of_part()

    def _replayed(self, collectives: Sequence[Collective]) -> Callable[[], None]:
        return replayed(collectives, self._device)

    def _checksum_of_part(self) -> str:
        parts = map(_torch.own_part, self._trained_parameters())
        return _training.checksum([part.detach().cpu().numpy() for part in parts])


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
