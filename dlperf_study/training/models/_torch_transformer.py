"""Transformers in PyTorch: blocks with separate matrices of queries, keys and values, and the losses on top of them.

The number of heads is never a number in ``forward``, so that matrices may be divided among devices by their columns.
A network has its parts by name: ``wte``, ``wpe``, ``blocks``, ``nf``, ``head``; a block ``n1``, ``attn``, ``n2``,
``mlp``. Its ``embed`` is what comes before the blocks, and its ``predict`` what comes after them: blocks may be divided
among devices.
"""

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

from dlperf_study.training.models._base import composed, norm_first, norm_last
from dlperf_study.training.models._sequences import BERT_EPSILON, DEVIATION, GPT_EPSILON, LLAMA_EPSILON, Sizes

#: The parts of a network that come before its blocks.
EMBEDDING = ("wte", "wpe", "wse", "ne")


def next_token_module(network: Any) -> Any:
    """Return ``network`` with the mean cross-entropy of each next token; tokens and targets come as [N, T]."""
    from torch.nn import Module

    def loss(module: Any, tokens: Any, targets: Any) -> Any:
        return _cross_entropy(module.network(tokens), targets)

    return composed(Module, loss, network=network)


def masked_module(network: Any) -> Any:
    """Return ``network`` with the sum of two mean cross-entropies: of masked tokens, and of the next sentence.

    Tokens come as [N, T], masked positions and their tokens as [N, M], and whether the halves belong together as [N].
    """
    from torch.nn import Module, functional

    def loss(module: Any, tokens: Any, positions: Any, labels: Any, is_next: Any) -> Any:
        logits, next_logits = module.network(tokens, positions)
        return _cross_entropy(logits, labels) + functional.cross_entropy(next_logits.float(), is_next)

    return composed(Module, loss, network=network)


def _cross_entropy(logits: Any, targets: Any) -> Any:
    """Return the mean cross-entropy of logits [N, T, V] and targets [N, T].

    Logits may be divided among ranks by their vocabulary: then it is the same on each of these.
    """
    from torch.nn import functional

    loss = functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
    return loss.to_local() if hasattr(loss, "to_local") else loss


def gpt_network(sizes: Sizes) -> Any:
    """Return GPT-2: tokens [N, T] to logits [N, T, V]."""
    from torch import nn

    def norm() -> Any:
        return nn.LayerNorm(sizes.hidden, eps=GPT_EPSILON)

    positions = nn.Embedding(sizes.positions, sizes.hidden)
    return _decoder(
        sizes,
        lambda: norm_first(nn.Module, _attention(sizes, True), _feed_forward(sizes, "tanh"), norm),
        norm,
        wpe=positions,
    )


def llama_network(sizes: Sizes, length: int) -> Any:
    """Return Llama for sequences of ``length``: tokens [N, T] to logits [N, T, V]."""
    from torch import nn

    def norm() -> Any:
        return nn.RMSNorm(sizes.hidden, eps=LLAMA_EPSILON)

    return _decoder(sizes, lambda: norm_first(nn.Module, _rotated_attention(sizes, length), _gated(sizes), norm), norm)


def _decoder(sizes: Sizes, block: Any, norm: Any, **positions: Any) -> Any:
    """Return a network of blocks behind the embedding of tokens; ``wpe`` embeds their positions, where it is given."""
    import torch
    from torch import nn

    def embed(network: Any, tokens: Any) -> Any:
        features = network.wte(tokens)
        if positions:
            features = features + network.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        return features

    def predict(network: Any, features: Any) -> Any:
        return network.head(network.nf(features))

    network = _network(
        embed,
        predict,
        wte=nn.Embedding(sizes.vocabulary, sizes.hidden),
        **positions,
        blocks=_blocks(sizes, block),
        nf=norm(),
        head=nn.Linear(sizes.hidden, sizes.vocabulary, bias=False),
    )
    return _initialised(network, sizes)


def bert_network(sizes: Sizes) -> Any:
    """Return BERT: tokens [N, T] and masked positions [N, M] to logits [N, M, V], and of the next sentence [N, 2]."""
    import torch
    from torch import nn
    from torch.nn import functional

    def embed(network: Any, tokens: Any) -> Any:
        indices = torch.arange(tokens.shape[1], device=tokens.device)
        # The second half is the second sentence.
        segment = (indices >= tokens.shape[1] // 2).long()
        return network.ne(network.wte(tokens) + network.wpe(indices) + network.wse(segment))

    def predict(network: Any, features: Any, positions: Any) -> Any:
        next_logits = network.nsp(torch.tanh(network.pool(features[:, 0])))
        rows = positions[..., None].expand(-1, -1, features.shape[-1])
        masked = network.nm(functional.gelu(network.mlm(features.gather(1, rows))))
        return network.head(masked) + network.head_bias, next_logits

    def norm() -> Any:
        return nn.LayerNorm(sizes.hidden, eps=BERT_EPSILON)

    hidden = sizes.hidden
    network = _network(
        embed,
        predict,
        wte=nn.Embedding(sizes.vocabulary, hidden),
        wpe=nn.Embedding(sizes.positions, hidden),
        wse=nn.Embedding(2, hidden),
        ne=norm(),
        blocks=_blocks(
            sizes, lambda: norm_last(nn.Module, _attention(sizes, False), _feed_forward(sizes, "none"), norm)
        ),
        pool=nn.Linear(hidden, hidden),
        nsp=nn.Linear(hidden, 2),
        mlm=nn.Linear(hidden, hidden),
        nm=norm(),
        head=nn.Linear(hidden, sizes.vocabulary, bias=False),
        head_bias=nn.Parameter(torch.zeros(sizes.vocabulary)),
    )
    return _initialised(network, sizes)


def _network(embed: Any, predict: Any, **parts: Any) -> Any:
    """Return a network: ``predict(network, features, *positions)`` of what its blocks make of ``embed``'s features."""
    from torch.nn import Module

    def forward(network: Any, tokens: Any, *positions: Any) -> Any:
        return predict(network, _through_blocks(network, embed(network, tokens)), *positions)

    network = composed(Module, forward, **parts)
    network.embed, network.predict = embed, predict
    return network


def _through_blocks(network: Any, features: Any) -> Any:
    """Return what the blocks of a network make of features, one after the other."""
    for block in network.blocks.values():
        features = block(features)
    return features


def recompute_blocks(network: Any) -> None:
    """Let each block of a network keep its input alone, and compute its activations again in the backward pass.

    ``forward`` is replaced, so that hooks of the block, such as those that gather its parameters, stay around it. No
    block takes random numbers.
    """
    from torch.utils.checkpoint import checkpoint

    for block in network.blocks.values():
        block.forward = partial(checkpoint, block.forward, use_reentrant=False, preserve_rng_state=False)


def network_stage(network: Any, layers: Iterable[int], is_first: bool, is_last: bool) -> Any:
    """Return the part of a network that has these of its blocks, which share their parameters with it.

    The first takes tokens [N, T], every other features [N, T, h]; the last returns what the network does, and takes
    what its ``predict`` needs besides features, every other returns features.
    """
    from torch.nn import Module, ModuleDict

    def forward(stage: Any, inputs: Any, *positions: Any) -> Any:
        features = _through_blocks(stage, network_embed(stage, inputs) if is_first else inputs)
        return network_predict(stage, features, *positions) if is_last else features

    network_embed, network_predict = network.embed, network.predict
    kept = ModuleDict({str(layer): network.blocks[str(layer)] for layer in layers})
    parts = {"blocks": kept}
    for name, part in (network._modules | network._parameters).items():
        if name not in parts and (is_first if name in EMBEDDING else is_last):
            parts[name] = part
    return composed(Module, forward, **parts)


def _blocks(sizes: Sizes, block: Any) -> Any:
    """Return the blocks by their number, as a part of a network keeps some of them."""
    from torch.nn import ModuleDict

    return ModuleDict({str(layer): block() for layer in range(sizes.layers)})


def _attention(sizes: Sizes, is_causal: bool) -> Any:
    """Return attention with biases: features [N, T, h] to [N, T, h]."""
    from torch.nn import Module, functional

    def forward(attention: Any, features: Any) -> Any:
        queries, keys, values = _heads(attention, features, sizes)
        mixed = functional.scaled_dot_product_attention(queries, keys, values, is_causal=is_causal)
        return attention.wo(mixed.transpose(1, 2).flatten(2))

    return composed(Module, forward, **_matrices(sizes, bias=True))


def _rotated_attention(sizes: Sizes, length: int) -> Any:
    """Return causal attention without biases, with rotated positions and grouped queries."""
    from torch.nn import Module, functional

    is_grouped = sizes.groups != sizes.heads

    def forward(attention: Any, features: Any) -> Any:
        queries, keys, values = _heads(attention, features, sizes)
        queries, keys = (_rotated(part, attention.cosines, attention.sines) for part in (queries, keys))
        mixed = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True, enable_gqa=is_grouped)
        return attention.wo(mixed.transpose(1, 2).flatten(2))

    attention = composed(Module, forward, **_matrices(sizes, bias=False))
    for name, table in zip(("cosines", "sines"), _rotations(sizes, length), strict=True):
        attention.register_buffer(name, table, persistent=False)
    return attention


def _matrices(sizes: Sizes, bias: bool) -> dict[str, Any]:
    from torch.nn import Linear

    hidden, queries, keys = sizes.hidden, sizes.heads * sizes.head, sizes.groups * sizes.head
    return {
        "wq": Linear(hidden, queries, bias=bias),
        "wk": Linear(hidden, keys, bias=bias),
        "wv": Linear(hidden, keys, bias=bias),
        "wo": Linear(queries, hidden, bias=bias),
    }


def _heads(attention: Any, features: Any, sizes: Sizes) -> list[Any]:
    """Return queries, keys and values of features [N, T, h], each [N, heads, T, d]."""
    matrices = (attention.wq, attention.wk, attention.wv)
    return [matrix(features).unflatten(-1, (-1, sizes.head)).transpose(1, 2) for matrix in matrices]


def _rotations(sizes: Sizes, length: int) -> tuple[Any, Any]:
    """Return cosines and sines [T, d] of the angles by which pairs of features are rotated."""
    import torch

    frequencies = sizes.theta ** (-torch.arange(0, sizes.head, 2, dtype=torch.float64) / sizes.head)
    angles = torch.outer(torch.arange(length, dtype=torch.float64), frequencies).repeat(1, 2)
    return angles.cos().float(), angles.sin().float()


def _rotated(heads: Any, cosines: Any, sines: Any) -> Any:
    """Return heads [N, a, T, d] rotated by their positions, in their own number format."""
    import torch

    first, second = heads.float().chunk(2, dim=-1)
    turned = heads.float() * cosines + torch.cat((-second, first), dim=-1) * sines
    return turned.to(heads.dtype)


def _feed_forward(sizes: Sizes, approximation: str) -> Any:
    """Return a feed-forward network of two matrices, with GELU as it is or approximated by a hyperbolic tangent."""
    from torch.nn import Linear, Module, functional

    def forward(network: Any, features: Any) -> Any:
        return network.w2(functional.gelu(network.w1(features), approximate=approximation))

    return composed(Module, forward, w1=Linear(sizes.hidden, sizes.inner), w2=Linear(sizes.inner, sizes.hidden))


def _gated(sizes: Sizes) -> Any:
    """Return a feed-forward network of three matrices without biases, gated by SiLU."""
    from torch.nn import Linear, Module, functional

    def forward(network: Any, features: Any) -> Any:
        return network.w2(functional.silu(network.w1(features)) * network.w3(features))

    parts = {name: Linear(sizes.hidden, sizes.inner, bias=False) for name in ("w1", "w3")}
    return composed(Module, forward, **parts, w2=Linear(sizes.inner, sizes.hidden, bias=False))


def _initialised(network: Any, sizes: Sizes) -> Any:
    """Return ``network`` with normal weights and biases of 0, and its head tied to the embedding where it is."""
    from torch import nn

    for name, layer in network.named_modules():
        if isinstance(layer, nn.Linear | nn.Embedding):
            is_residual = name.endswith((".wo", ".w2"))
            nn.init.normal_(layer.weight, std=DEVIATION / (math.sqrt(2 * sizes.layers) if is_residual else 1))
        if isinstance(layer, nn.Linear) and layer.bias is not None:
            nn.init.zeros_(layer.bias)
    if sizes.tied:
        network.head.weight = network.wte.weight
    return network
