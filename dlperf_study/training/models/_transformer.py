"""Transformers, written once for PyTorch and Paddle: ``nn`` has the layers and functions of a library.

The number of heads is never a number in ``forward``, so that matrices may be divided among devices by their columns.
A network has its parts by name: ``wte``, ``wpe``, ``blocks``, ``nf``, ``head``; a block ``n1``, ``attn``, ``n2``,
``mlp``. Its ``embed`` is what comes before the blocks, and its ``predict`` what comes after them: blocks may be divided
among devices.
"""

import math
from collections.abc import Callable
from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.training.models._base import Builder, composed, norm_first, norm_last
from dlperf_study.training.models._sequences import BERT_EPSILON, DEVIATION, GPT_EPSILON, Sizes


def builders(network: Callable[[Any, Sizes], Any], loss: Callable[[Any, Any], Any], sizes: Sizes) -> dict[str, Builder]:
    """Return PyTorch's and Paddle's builder of a network."""

    def build_torch(configuration: Configuration, rank: int, world_size: int) -> Any:
        from dlperf_study.training.models._torch_transformer import layers, tied

        nn = layers()
        return loss(nn, tied(network(nn, sizes), sizes))

    def build_paddle(configuration: Configuration, rank: int, world_size: int) -> Any:
        from dlperf_study.training.models._paddle_transformer import layers

        nn = layers()
        return loss(nn, network(nn, sizes))

    return {"torch": build_torch, "paddle": build_paddle}


def next_tokens(nn: Any, network: Any) -> Any:
    """Return ``network`` with the cross-entropy of each next token."""

    def loss(layer: Any, tokens: Any, targets: Any) -> Any:
        return nn.cross_entropy(layer.network(tokens).flatten(0, 1), targets.flatten())

    return composed(nn.Layer, loss, network=network)


def masked_tokens(nn: Any, network: Any) -> Any:
    """Return ``network`` with the losses of masked tokens and sentences."""

    # Tokens come as [N, T], masked positions and their tokens as [N, M], and whether the halves belong together as [N].
    def loss(layer: Any, tokens: Any, positions: Any, labels: Any, is_next: Any) -> Any:
        logits, next_logits = layer.network(tokens, positions)
        masked = nn.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return masked + nn.cross_entropy(next_logits, is_next)

    return composed(nn.Layer, loss, network=network)


def gpt(nn: Any, sizes: Sizes) -> Any:
    """Return GPT-2: tokens [N, T] to logits [N, T, V]."""

    def norm() -> Any:
        return nn.LayerNorm(sizes.hidden, GPT_EPSILON)

    def block() -> Any:
        return norm_first(nn.Layer, attention(nn, sizes, True), feed_forward(nn, sizes, True), norm)

    return decoder(nn, sizes, block, norm, wpe=nn.Embedding(sizes.positions, sizes.hidden))


def decoder(nn: Any, sizes: Sizes, block: Callable[[], Any], norm: Callable[[], Any], **positions: Any) -> Any:
    """Return blocks behind the embedding of tokens and ``positions``."""

    def embed(network: Any, tokens: Any) -> Any:
        features = network.wte(tokens)
        if positions:
            features = features + network.wpe(nn.positions(tokens))
        return features

    def predict(network: Any, features: Any) -> Any:
        return nn.logits(network, network.nf(features))

    parts = {"wte": nn.Embedding(sizes.vocabulary, sizes.hidden), **positions}
    parts |= {"blocks": blocks(nn, sizes, block), "nf": norm(), **nn.head(sizes)}
    return joined(nn, sizes, embed, predict, parts)


def bert(nn: Any, sizes: Sizes) -> Any:
    """Return BERT: tokens [N, T] and masked positions [N, M] to logits [N, M, V], and of the next sentence [N, 2]."""

    def embed(network: Any, tokens: Any) -> Any:
        indices = nn.positions(tokens)
        # The second half is the second sentence.
        segment = nn.integers(indices >= tokens.shape[1] // 2)
        return network.ne(network.wte(tokens) + network.wpe(indices) + network.wse(segment))

    def predict(network: Any, features: Any, positions: Any) -> Any:
        next_logits = network.nsp(nn.tanh(network.pool(features[:, 0])))
        masked = network.nm(nn.gelu(network.mlm(nn.rows(features, positions)), False))
        return nn.logits(network, masked) + network.head_bias, next_logits

    def norm() -> Any:
        return nn.LayerNorm(sizes.hidden, BERT_EPSILON)

    def block() -> Any:
        return norm_last(nn.Layer, attention(nn, sizes, False), feed_forward(nn, sizes, False), norm)

    hidden = sizes.hidden
    parts = {
        "wte": nn.Embedding(sizes.vocabulary, hidden),
        "wpe": nn.Embedding(sizes.positions, hidden),
        "wse": nn.Embedding(2, hidden),
        "ne": norm(),
        "blocks": blocks(nn, sizes, block),
        "pool": nn.Linear(hidden, hidden),
        "nsp": nn.Linear(hidden, 2),
        "mlm": nn.Linear(hidden, hidden),
        "nm": norm(),
        **nn.head(sizes),
        "head_bias": nn.zero_parameter(sizes.vocabulary),
    }
    return joined(nn, sizes, embed, predict, parts)


def joined(nn: Any, sizes: Sizes, embed: Callable[..., Any], predict: Callable[..., Any], parts: Any) -> Any:
    """Return a network of ``embed``, its blocks and ``predict``."""

    # Its weights are normal, its biases 0.
    def forward(network: Any, tokens: Any, *positions: Any) -> Any:
        return predict(network, through_blocks(network, embed(network, tokens)), *positions)

    network = composed(nn.Layer, forward, **parts)
    network.embed, network.predict = embed, predict
    for name, layer in nn.named_layers(network):
        if isinstance(layer, nn.Linear | nn.Embedding):
            is_residual = name.endswith((".wo", ".w2"))
            nn.fill_normal(layer.weight, DEVIATION / (math.sqrt(2 * sizes.layers) if is_residual else 1))
        if isinstance(layer, nn.Linear) and layer.bias is not None:
            nn.fill_zeros(layer.bias)
    return network


def blocks(nn: Any, sizes: Sizes, block: Callable[[], Any]) -> Any:
    """Return the blocks by their number."""
    return nn.LayerDict({str(layer): block() for layer in range(sizes.layers)})


def through_blocks(network: Any, features: Any) -> Any:
    """Return what the blocks make of features."""
    for block in network.blocks.values():
        features = block(features)
    return features


def attention(nn: Any, sizes: Sizes, is_causal: bool) -> Any:
    """Return attention with biases: [N, T, h] to [N, T, h]."""

    def forward(layer: Any, features: Any) -> Any:
        queries, keys, values = (nn.heads(part(features), sizes.head) for part in (layer.wq, layer.wk, layer.wv))
        return layer.wo(nn.merged(nn.attend(queries, keys, values, is_causal)))

    hidden, queries, keys = sizes.hidden, sizes.heads * sizes.head, sizes.groups * sizes.head
    matrices = {"wq": nn.Linear(hidden, queries), "wk": nn.Linear(hidden, keys), "wv": nn.Linear(hidden, keys)}
    return composed(nn.Layer, forward, **matrices, wo=nn.Linear(queries, hidden))


def feed_forward(nn: Any, sizes: Sizes, is_approximate: bool) -> Any:
    """Return two matrices with GELU, exact or approximate."""

    def forward(layer: Any, features: Any) -> Any:
        return layer.w2(nn.gelu(layer.w1(features), is_approximate))

    first, second = nn.Linear(sizes.hidden, sizes.inner), nn.Linear(sizes.inner, sizes.hidden)
    return composed(nn.Layer, forward, w1=first, w2=second)
