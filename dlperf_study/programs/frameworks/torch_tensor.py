"""PyTorch's tensor parallelism: ranks divide the matrices of a transformer, and train on the same samples.

Attention is divided by heads, feed-forward networks by inner features, embedding and head by the vocabulary:
``parallelize_module``. Groups of such ranks have samples of their own by ``DistributedDataParallel`` around it.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from dlperf_study.core.user_commands import install_command
from dlperf_study.programs import models
from dlperf_study.programs.frameworks import _torch_divided, _torch_training, torch_ddp
from dlperf_study.programs.frameworks._base import ClusterView
from dlperf_study.programs.frameworks._obstacles import image_obstacles, micro_batch_obstacles
from dlperf_study.programs.frameworks._torch_divided import DividedTrainer
from dlperf_study.programs.frameworks._torch_mesh import device_mesh, forget_groups
from dlperf_study.programs.models._base import network_of
from dlperf_study.programs.models._sequences import SequenceModel
from dlperf_study.study.configuration import Configuration

STRATEGIES = ("tensor",)
LEVELS = _torch_divided.LEVELS | {"strategy": STRATEGIES}
SETTINGS = ("tensor_parallel", "sequence_parallel", "micro_batches")
STAYS = "its matrices are divided, so that no step can be done without exchanging activations"


def obstacles(configuration: Configuration, cluster: ClusterView, version: str | None) -> Iterator[str]:
    """Yield each reason why the configuration can't run here."""
    if configuration.tensor_parallel == 1:
        yield "tensor_parallel is 1, but torch_tensor divides matrices among 2 or more; torch_ddp does not"
    yield from micro_batch_obstacles(configuration)
    yield from image_obstacles(configuration, "torch_tensor")
    yield from undivided_sizes(configuration)
    yield from _torch_training.obstacles(
        configuration, cluster, version, "torch", install_command("torch"), SETTINGS, LEVELS
    )


def undivided_sizes(configuration: Configuration) -> Iterator[str]:
    """Yield which sizes of the model can't be divided equally; an uneven vocabulary can be divided."""
    name, degree = configuration.model, configuration.tensor_parallel
    model = models.load(name) if name in models.names() else None
    if not isinstance(model, SequenceModel):
        return
    sizes = {"heads": model.sizes.heads, "kv_heads": model.sizes.kv_heads, "ffn": model.sizes.inner}
    for size, count in sizes.items():
        if count % degree:
            yield f"{size} of model {name} is {count}, which tensor_parallel {degree} does not divide"
    if configuration.sequence_parallel and (length := configuration.sequence_length) % degree:
        yield f"sequence_length is {length}, which tensor_parallel {degree} does not divide for sequence_parallel"


class TensorTrainer(DividedTrainer):
    """One rank that has its part of each matrix."""

    computation_obstacle = STAYS

    def __init__(self, configuration: Configuration) -> None:
        self._divided_loss = ExitStack()
        super().__init__(configuration)

    def close(self) -> None:
        """End the trainer, with all that has a group of ranks; see ``DataParallelTrainer``."""
        self._divided_loss.close()
        self.barrier()
        self._collectives.clear()
        self._parts.clear()
        del self._layer
        forget_groups(self._mesh)
        super().close()

    def _trained_parameters(self) -> list[Any]:
        return self._parts or super()._trained_parameters()

    def _parallel(self) -> Any:
        """Return the layer with divided matrices; with several groups, wrapped to average the gradients of these."""
        from torch.distributed.tensor.parallel import loss_parallel
        from torch.nn.parallel import DistributedDataParallel

        layout = self._configuration.layout
        self._parts: list[Any] = []
        self._mesh = mesh = device_mesh(layout, self._device)
        self._divided_loss.enter_context(loss_parallel())
        with self._dividing():
            model = self._layer
            divide(network_of(model), mesh["tensor"], self._configuration.sequence_parallel)
            if layout.data > 1:
                model = DistributedDataParallel(model, device_mesh=mesh["data"], forward_sync_buffers=False)
            # Of a wrapped layer, the parts are no parameters once it has computed.
            self._parts = _torch_training.trainable_parameters(model)
        return model

    def _optimizer(self) -> Any:
        """Return the optimizer; it can't update divided and whole parameters at once."""
        groups: dict[bool, list[Any]] = {}
        for parameter in self._parts:
            groups.setdefault(hasattr(parameter, "to_local"), []).append(parameter)
        return _torch_training.optimizer_of(self._configuration, [{"params": group} for group in groups.values()])

    def _update(self, optimizer: Any, scaler: Any) -> None:
        """Update this rank's parts by gradients that are divided as these are.

        A gradient that ranks have parts of the sum of would be added up each time that the optimizer reads it.
        """
        for part in self._parts:
            if hasattr(part, "to_local") and part.grad.placements != part.placements:
                part.grad = part.grad.redistribute(placements=part.placements)
        super()._update(optimizer, scaler)


def divide(network: Any, mesh: Any, between_matrices: bool) -> None:
    """Divide the matrices of a transformer among the ranks of a mesh; ``between_matrices``: sequences too, there.

    The parts of a network have the names that ``_torch_transformer`` gives them.
    """
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.parallel import PrepareModuleOutput, parallelize_module
    from torch.nn import Parameter

    is_tied = network.head.weight is network.wte.weight
    parallelize_module(network, mesh, _styles(network, between_matrices))
    if hasattr(network, "head_bias"):
        network.head_bias = Parameter(distribute_tensor(network.head_bias.detach(), mesh, [Shard(0)]))
    if between_matrices and not hasattr(network, "nf"):
        *_, last = network.blocks.values()
        gathered = PrepareModuleOutput(output_layouts=Shard(1), desired_output_layouts=Replicate())
        parallelize_module(last, mesh, gathered)
    if is_tied:
        _tie(network)


def _styles(network: Any, between_matrices: bool) -> dict[str, Any]:
    """Return how each part of a network is divided, and what comes into it."""
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
    embedded = between if not hasattr(network, "wpe") else replicated
    of_head = between if hasattr(network, "nf") else replicated
    styles: dict[str, Any] = {
        "wte": RowwiseParallel(input_layouts=replicated, output_layouts=embedded),
        "head": ColwiseParallel(input_layouts=of_head, output_layouts=Shard(-1), use_local_output=False),
    }
    styles |= {f"blocks.*.{name}": gathered for name in ("attn", "mlp")}
    styles |= {f"blocks.*.{name}": ColwiseParallel() for name in ("attn.wq", "attn.wk", "attn.wv", "mlp.w1", "mlp.w3")}
    styles |= {f"blocks.*.{name}": RowwiseParallel(output_layouts=between) for name in ("attn.wo", "mlp.w2")}
    if between_matrices:
        styles |= dict.fromkeys(("blocks.*.n1", "blocks.*.n2", "nf"), SequenceParallel(use_local_output=True))
        if embedded != between:
            styles["blocks.0"] = PrepareModuleInput(
                input_layouts=(replicated,), desired_input_layouts=(sequence,), use_local_output=True
            )
    return {name: style for name, style in styles.items() if _has(network, name)}


def _has(network: Any, name: str) -> bool:
    """Return whether a network has a part; ``*`` is the first block."""
    return name.replace("*", "0") in dict(network.named_modules())


def _tie(network: Any) -> None:
    """Let the head have the weights of the embedding again: dividing them made two of the one parameter."""
    del network.head.weight

    def share(head: Any, _: Any) -> None:
        # No parameter, but what the embedding has in this step: a wrapped layer has another tensor in each.
        vars(head)["weight"] = network.wte.weight

    network.head.register_forward_pre_hook(share, prepend=True)


FRAMEWORK = replace(
    torch_ddp.FRAMEWORK,
    name="torch_tensor",
    display_name="PyTorch TP",
    strategies=STRATEGIES,
    obstacles=obstacles,
    trainer=TensorTrainer,
    compilers={},
    alone="",
)
