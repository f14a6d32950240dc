"""The groups of ranks of a layout, as PyTorch has them: a device mesh of the dimensions that have several ranks."""

from datetime import timedelta
from typing import Any

from dlperf_study.programs.frameworks._processes import collective_seconds
from dlperf_study.study.layout import DIMENSIONS, Dimension, Layout


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
