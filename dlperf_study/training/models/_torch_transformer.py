"""What PyTorch has of the parts of ``_transformer.py``, and Llama, which is built for PyTorch alone."""

from collections.abc import Iterable
from functools import partial
from types import SimpleNamespace
from typing import Any

from dlperf_study.training.models._base import composed, norm_first
from dlperf_study.training.models._sequences import LLAMA_EPSILON, Sizes
from dlperf_study.training.models._transformer import decoder, through_blocks

#: The parts of a network that come before its blocks.
EMBEDDING = ("wte", "wpe", "wse", "ne")


def layers() -> SimpleNamespace:
    """Return PyTorch's layers under the names of Paddle."""
    import torch
    from torch import nn
    from torch.nn import functional

    def attend(queries: Any, keys: Any, values: Any, is_causal: bool) -> Any:
        return functional.scaled_dot_product_attention(queries, keys, values, is_causal=is_causal)

    def rows(features: Any, positions: Any) -> Any:
        return features.gather(1, positions[..., None].expand(-1, -1, features.shape[-1]))

    def head(sizes: Sizes) -> dict[str, Any]:
        return {"head": nn.Linear(sizes.hidden, sizes.vocabulary, bias=False)}

    return SimpleNamespace(
        Layer=nn.Module,
        LayerDict=nn.ModuleDict,
        Linear=nn.Linear,
        Embedding=nn.Embedding,
        LayerNorm=nn.LayerNorm,
        named_layers=nn.Module.named_modules,
        fill_normal=lambda weight, deviation: nn.init.normal_(weight, std=deviation),
        fill_zeros=nn.init.zeros_,
        attend=attend,
        heads=lambda features, size: features.unflatten(-1, (-1, size)).transpose(1, 2),
        merged=lambda mixed: mixed.transpose(1, 2).flatten(2),
        rows=rows,
        head=head,
        logits=lambda network, features: network.head(features),
        positions=lambda tokens: torch.arange(tokens.shape[1], device=tokens.device),
        integers=torch.Tensor.long,
        tanh=torch.tanh,
        gelu=_gelu,
        cross_entropy=_cross_entropy,
        zero_parameter=lambda count: nn.Parameter(torch.zeros(count)),
    )


def tied(network: Any, sizes: Sizes) -> Any:
    """Return ``network`` with a tied head, where it is."""
    if sizes.tied:
        network.head.weight = network.wte.weight
    return network


def llama(sizes: Sizes, length: int) -> Any:
    """Return Llama: tokens [N, T] to logits [N, T, V]."""
    nn = layers()

    def norm() -> Any:
        from torch.nn import RMSNorm

        return RMSNorm(sizes.hidden, eps=LLAMA_EPSILON)

    def block() -> Any:
        return norm_first(nn.Layer, _rotated_attention(nn, sizes, length), _gated(nn, sizes), norm)

    return decoder(nn, sizes, block, norm)


def recompute_blocks(network: Any) -> None:
    """Let each block keep its input alone.

    ``forward`` is replaced, so that hooks of the block, such as those that gather its parameters, stay around it. No
    block takes random numbers.
    """
    from torch.utils.checkpoint import checkpoint

    for block in network.blocks.values():
        block.forward = partial(checkpoint, block.forward, use_reentrant=False, preserve_rng_state=False)


def network_stage(network: Any, layers: Iterable[int], is_first: bool, is_last: bool) -> Any:
    """Return the part of a network with these blocks."""
    # The first takes tokens [N, T], every other features [N, T, h]; the last returns what the network does, and takes
    # what its ``predict`` needs besides features, every other returns features.
    from torch.nn import Module, ModuleDict

    def forward(stage: Any, inputs: Any, *positions: Any) -> Any:
        features = through_blocks(stage, network_embed(stage, inputs) if is_first else inputs)
        if is_last:
            return network_predict(stage, features, *positions)
        return features

    network_embed, network_predict = network.embed, network.predict
    kept = ModuleDict({str(layer): network.blocks[str(layer)] for layer in layers})
    parts = {"blocks": kept}
    for name, part in (network._modules | network._parameters).items():
        if name not in parts and (is_first if name in EMBEDDING else is_last):
            parts[name] = part
    return composed(Module, forward, **parts)


def _rotated_attention(nn: Any, sizes: Sizes, length: int) -> Any:
    """Return causal attention with rotated positions and grouped queries."""
    from torch.nn import functional

    is_grouped = sizes.groups != sizes.heads

    def forward(attention: Any, features: Any) -> Any:
        matrices = (attention.wq, attention.wk, attention.wv)
        queries, keys, values = (nn.heads(matrix(features), sizes.head) for matrix in matrices)
        queries, keys = (_rotated(part, attention.cosines, attention.sines) for part in (queries, keys))
        mixed = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True, enable_gqa=is_grouped)
        return attention.wo(nn.merged(mixed))

    hidden, queries, keys = sizes.hidden, sizes.heads * sizes.head, sizes.groups * sizes.head
    matrix = partial(nn.Linear, bias=False)
    matrices = {"wq": matrix(hidden, queries), "wk": matrix(hidden, keys), "wv": matrix(hidden, keys)}
    attention = composed(nn.Layer, forward, **matrices, wo=matrix(queries, hidden))
    for name, table in zip(("cosines", "sines"), _rotations(sizes, length), strict=True):
        attention.register_buffer(name, table, persistent=False)
    return attention


def _rotations(sizes: Sizes, length: int) -> tuple[Any, Any]:
    """Return cosines and sines [T, d] of the rotation."""
    import torch

    frequencies = sizes.theta ** (-torch.arange(0, sizes.head, 2, dtype=torch.float64) / sizes.head)
    angles = torch.outer(torch.arange(length, dtype=torch.float64), frequencies).repeat(1, 2)
    return angles.cos().float(), angles.sin().float()


def _rotated(heads: Any, cosines: Any, sines: Any) -> Any:
    import torch

    first, second = heads.float().chunk(2, dim=-1)
    turned = heads.float() * cosines + torch.cat((-second, first), dim=-1) * sines
    return turned.to(heads.dtype)


def _gated(nn: Any, sizes: Sizes) -> Any:
    """Return a feed-forward network gated by SiLU."""
    from torch.nn import functional

    def forward(network: Any, features: Any) -> Any:
        return network.w2(functional.silu(network.w1(features)) * network.w3(features))

    parts = {name: nn.Linear(sizes.hidden, sizes.inner, bias=False) for name in ("w1", "w3")}
    return composed(nn.Layer, forward, **parts, w2=nn.Linear(sizes.inner, sizes.hidden, bias=False))


def _cross_entropy(logits: Any, targets: Any) -> Any:
    from torch.nn import functional

    # Logits may be divided among ranks by their vocabulary: then the loss is the same on each of these.
    loss = functional.cross_entropy(logits.float(), targets)
    if hasattr(loss, "to_local"):
        return loss.to_local()
    return loss


def _gelu(features: Any, is_approximate: bool) -> Any:
    from torch.nn import functional

    return functional.gelu(features, approximate="tanh" if is_approximate else "none")
