"""The matrices of a transformer, divided among ranks by ``parallelize_module``, and what that asks of its training.

Attention is divided by heads, feed-forward networks by inner features, embedding and head by the vocabulary.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.training.frameworks._obstacles import sequence_model


def undivided_sizes(configuration: Configuration) -> Iterator[str]:
    """Yield which sizes of the model can't be divided equally; an uneven vocabulary can be divided."""
    model, degree = sequence_model(configuration), configuration.tensor_parallel
    if not model:
        return
    sizes = {"heads": model.sizes.heads, "kv_heads": model.sizes.kv_heads, "ffn": model.sizes.inner}
    for size, count in sizes.items():
        if count % degree:
            yield f"{size} of model {model.name} is {count}, which tensor_parallel {degree} does not divide"
    if configuration.sequence_parallel and (length := configuration.sequence_length) % degree:
        yield f"sequence_length is {length}, which tensor_parallel {degree} does not divide for sequence_parallel"


def divide(network: Any, mesh: Any, between_matrices: bool) -> None:
    """Divide the matrices of a transformer among the ranks of a mesh; ``between_matrices``: sequences too, there.

    The parts of a network have the names that ``_transformer.py`` gives them; a stage of a pipeline has some of
    them. Between stages there are features, of a divided sequence each rank's part.
    """
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
    """Return whether a network has a part; ``*`` is its first block."""
    return name.replace("*", next(iter(network.blocks))) in dict(network.named_modules())


def _tie(network: Any) -> None:
    """Let the head have the weights of the embedding again: dividing them made two of the one parameter."""
    del network.head.weight

    def share(head: Any, _: Any) -> None:
        # No parameter, but what the embedding has in this step: a wrapped layer has another tensor in each.
        vars(head)["weight"] = network.wte.weight

    network.head.register_forward_pre_hook(share, prepend=True)


def by_placement(parameters: Iterable[Any]) -> list[dict[str, Any]]:
    """Return groups of parameters for an optimizer, which can't update divided and whole ones at once."""
    groups: dict[bool, list[Any]] = {}
    for parameter in parameters:
        groups.setdefault(hasattr(parameter, "to_local"), []).append(parameter)
    return [{"params": group} for group in groups.values()]


def divide_gradients(parameters: Iterable[Any]) -> None:
    """Divide gradients as their parameters are, adding up those that ranks have parts of the sum of.

    Such a gradient would be added up each time that somebody reads it.
    """
    for parameter in parameters:
        if hasattr(parameter, "to_local") and parameter.grad.placements != parameter.placements:
            parameter.grad = parameter.grad.redistribute(placements=parameter.placements)
