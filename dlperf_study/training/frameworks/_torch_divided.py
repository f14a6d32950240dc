"""A rank that divides a model, or the state of its training, with other ranks: its collectives are of several kinds.

The groups of ranks of a layout are, in PyTorch, a device mesh of the dimensions that have several ranks. The matrices
of a transformer are divided by ``parallelize_module``: attention by heads, feed-forward networks by inner features,
embedding and head by the vocabulary.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.study.layout import DIMENSIONS, Dimension, Layout
from dlperf_study.training.frameworks import _torch
from dlperf_study.training.frameworks._obstacles import BUILT_FOR_SHARDING, Values, sequence_model
from dlperf_study.training.frameworks._processes import collective_seconds
from dlperf_study.training.frameworks.torch_ddp import DataParallelTrainer

#: What is built of every strategy that divides a model; each has a ``strategy`` of its own.
BUILT: Values = _torch.BUILT | BUILT_FOR_SHARDING | {"gradient_compression": ("none",)}


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
        return super().description() | self._whole_sizes

    def first_step(self, batch: tuple[Any, ...]) -> str:
        self._distribute_gradients(batch)
        return super().first_step(batch)

    def _distribute_gradients(self, batch: tuple[Any, ...]) -> None:
        """Let ``DistributedDataParallel`` distribute gradients as in all later steps, where it wraps the model."""
        # At first it communicates all at once. In its second pass the ranks agree on several buffers, in the order in
        # which the gradients of the first one were ready.
        import torch

        if not hasattr(self.model, "reducer"):
            return
        own_devices = [self._library.device] if self._library.uses_gpu() else []
        with torch.random.fork_rng(own_devices):
            for _ in range(2):
                self.train_step.without_update(batch)

    def parameter_checksum(self) -> str:
        """Return a digest of the parameters of this rank."""
        # Before that, it is the digest of the whole model: ranks must divide the same one, which nobody sends to all.
        if not self._whole_checksum:
            return super().parameter_checksum()
        digest = self._checksum(self._trained_parameters())
        if digest == self._first_checksum:
            return self._whole_checksum
        return digest

    def _trained_parameters(self) -> list[Any]:
        return self._library.trained_parameters(self.layer)

    @contextmanager
    def _dividing(self) -> Iterator[None]:
        """Keep digests and sizes of the whole and of this part."""
        description = super().description()
        self._whole_sizes = {name: description[name] for name in ("parameters", "gradient_bytes")}
        self._whole_checksum = super().parameter_checksum()
        yield
        self._first_checksum = self._checksum(self._trained_parameters())


def device_mesh(layout: Layout, device: Any) -> Any:
    """Return the mesh of the dimensions with several ranks."""
    # Every rank of the job must call it, after the ranks have met. ``mesh["tensor"].get_group()`` is the group of this
    # rank in a dimension; a dimension of one rank has none.
    import torch
    from torch.distributed.device_mesh import DeviceMesh

    names = [name for name in DIMENSIONS if getattr(layout, name) > 1]
    ranks = torch.arange(layout.devices).view([getattr(layout, name) for name in names])
    groups = [_own_group(layout, name) for name in names]
    return DeviceMesh.from_group(groups, device.type, ranks, mesh_dim_names=tuple(names))


def forget_groups(mesh: Any) -> None:
    """Let groups end with the training."""
    # No collective of the mesh can be done after this.
    mesh._pg_registry.clear()


def _own_group(layout: Layout, dimension: Dimension) -> Any:
    """Return this rank's group in a dimension; all ranks make all groups."""
    import torch.distributed as dist

    limit, own_group = timedelta(seconds=collective_seconds()), None
    for ranks in layout.groups(dimension):
        if len(ranks) == layout.devices:
            return dist.group.WORLD
        group = dist.new_group(ranks, timeout=limit, group_desc=dimension)
        own_group = group if dist.get_rank() in ranks else own_group
    return own_group


def undivided_sizes(configuration: Configuration) -> Iterator[str]:
    """Yield which sizes of the model can't be divided equally."""
    model, degree = sequence_model(configuration), configuration.tensor_parallel
    if not model:
        return
    sizes = {"heads": model.sizes.heads, "kv_heads": model.sizes.kv_heads, "ffn": model.sizes.inner}
    for size, count in sizes.items():
        if count % degree:
            yield f"{size} of model {model.name} is {count}, but tensor_parallel {degree} must divide it"
    if configuration.sequence_parallel and (length := configuration.sequence_length) % degree:
        yield f"sequence_length is {length}, but tensor_parallel {degree} must divide it for sequence_parallel"


def divide(network: Any, mesh: Any, between_matrices: bool) -> None:
    """Divide the matrices of a transformer among a mesh."""
    # The parts of a network have the names that ``_transformer.py`` gives them; a stage of a pipeline has some of them.
    # Between stages there are features, of a divided sequence each rank's part.
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.parallel import PrepareModuleOutput, parallelize_module
    from torch.nn import Parameter

    is_tied = _has(network, "wte") and _has(network, "head") and network.head.weight is network.wte.weight
    parallelize_module(network, mesh, _styles(network, between_matrices))
    if hasattr(network, "head_bias"):
        network.head_bias = Parameter(distribute_tensor(network.head_bias.detach(), mesh, [Shard(0)]))
    if between_matrices and _has(network, "head") and not _has(network, "nf"):
        *_, last = network.blocks.values()
        gathered = PrepareModuleOutput(output_layouts=Shard(1), desired_output_layouts=Replicate())
        parallelize_module(last, mesh, gathered)
    if is_tied:
        _tie(network)


def _styles(network: Any, between_matrices: bool) -> dict[str, Any]:
    """Return how each part of a network is divided."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        PrepareModuleInput,
        RowwiseParallel,
        SequenceParallel,
    )

    replicated, sequence = Replicate(), Shard(1)
    between = sequence if between_matrices else replicated
    gathered = PrepareModuleInput(input_layouts=(between,), desired_input_layouts=(replicated,))
    # Positions are added to whole sequences.
    embedded = between if not _has(network, "wpe") else replicated
    of_head = between if _has(network, "nf") else replicated
    styles: dict[str, Any] = {
        "wte": RowwiseParallel(input_layouts=replicated, output_layouts=embedded),
        "head": ColwiseParallel(input_layouts=of_head, output_layouts=Shard(-1), use_local_output=False),
    }
    styles |= {f"blocks.*.{name}": gathered for name in ("attn", "mlp")}
    styles |= {f"blocks.*.{name}": ColwiseParallel() for name in ("attn.wq", "attn.wk", "attn.wv", "mlp.w1", "mlp.w3")}
    styles |= {f"blocks.*.{name}": RowwiseParallel(output_layouts=between) for name in ("attn.wo", "mlp.w2")}
    if between_matrices:
        styles |= dict.fromkeys(("blocks.*.n1", "blocks.*.n2", "nf"), SequenceParallel(use_local_output=True))
        if _has(network, "wpe"):
            styles["blocks.0"] = PrepareModuleInput(
                input_layouts=(replicated,), desired_input_layouts=(sequence,), use_local_output=True
            )
    return {name: style for name, style in styles.items() if _has(network, name)}


def _has(network: Any, name: str) -> bool:
    """Return whether a network has a part or, by ``*``, its first block has."""
    return name.replace("*", next(iter(network.blocks))) in dict(network.named_modules())


def _tie(network: Any) -> None:
    """Let the head have the weights of the embedding again."""
    del network.head.weight

    def share(head: Any, _: Any) -> None:
        # No parameter, but what the embedding has in this step: a wrapped layer has another tensor in each.
        vars(head)["weight"] = network.wte.weight

    network.head.register_forward_pre_hook(share, prepend=True)


def by_placement(parameters: Iterable[Any]) -> list[dict[str, Any]]:
    """Return groups for an optimizer: divided parameters, and whole ones."""
    groups: dict[bool, list[Any]] = {}
    for parameter in parameters:
        groups.setdefault(hasattr(parameter, "to_local"), []).append(parameter)
    return [{"params": group} for group in groups.values()]


def divide_gradients(parameters: Iterable[Any]) -> None:
    """Divide gradients as their parameters are."""
    # Such a gradient would be added up each time that somebody reads it.
    for parameter in parameters:
        if hasattr(parameter, "to_local") and parameter.grad.placements != parameter.placements:
            parameter.grad = parameter.grad.redistribute(placements=parameter.placements)
