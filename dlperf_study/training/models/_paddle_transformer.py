"""Transformers in Paddle: the parts of ``_torch_transformer.py`` under the same names.

Attention is two matrix products and a mask that is added: Paddle 3.0 has no fused causal attention on CPUs.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from dlperf_study.training.models._base import composed, norm_first, norm_last
from dlperf_study.training.models._sequences import BERT_EPSILON, DEVIATION, GPT_EPSILON, Sizes

#: Added to the product of a query with a later key: the exponential of the sum is 0 in float16 too.
MASKED_OUT = -30_000.0


def next_token_layer(network: Any) -> Any:
    """Return ``network`` with the mean cross-entropy of each next token; tokens and targets come as [N, T]."""
    from paddle.nn import Layer, functional

    def loss(layer: Any, tokens: Any, targets: Any) -> Any:
        logits = layer.network(tokens)
        return functional.cross_entropy(logits.flatten(0, 1).astype("float32"), targets.flatten())

    return composed(Layer, loss, network=network)


def masked_layer(network: Any) -> Any:
    """Return ``network`` with the sum of two mean cross-entropies: of masked tokens, and of the next sentence.

    Tokens come as [N, T], masked positions and their tokens as [N, M], and whether the halves belong together as [N].
    """
    from paddle.nn import Layer, functional

    def loss(layer: Any, tokens: Any, positions: Any, labels: Any, is_next: Any) -> Any:
        logits, next_logits = layer.network(tokens, positions)
        masked = functional.cross_entropy(logits.astype("float32"), labels.flatten())
        return masked + functional.cross_entropy(next_logits.astype("float32"), is_next)

    return composed(Layer, loss, network=network)


def gpt_network(sizes: Sizes) -> Any:
    """Return GPT-2: tokens [N, T] to logits [N, T, V]."""
    import paddle
    from paddle import nn

    def forward(network: Any, tokens: Any) -> Any:
        features = network.wte(tokens) + network.wpe(paddle.arange(tokens.shape[1]))
        for block in network.blocks:
            features = block(features)
        return _tied_head(network, network.nf(features))

    norm = partial(nn.LayerNorm, sizes.hidden, epsilon=GPT_EPSILON)
    return composed(
        nn.Layer,
        forward,
        wte=_embedding(sizes.vocabulary, sizes),
        wpe=_embedding(sizes.positions, sizes),
        blocks=_blocks(sizes, lambda: norm_first(nn.Layer, _attention(sizes, True), _feed_forward(sizes, True), norm)),
        nf=norm(),
    )


def bert_network(sizes: Sizes) -> Any:
    """Return BERT: tokens [N, T] and masked positions [N, M] to logits [N M, V], and of the next sentence [N, 2]."""
    import paddle
    from paddle import nn
    from paddle.nn import functional

    def forward(network: Any, tokens: Any, positions: Any) -> Any:
        samples, length = tokens.shape
        indices = paddle.arange(length)
        # The second half is the second sentence.
        segment = (indices >= length // 2).astype("int64")
        features = network.ne(network.wte(tokens) + network.wpe(indices) + network.wse(segment))
        for block in network.blocks:
            features = block(features)
        next_logits = network.nsp(paddle.tanh(network.pool(features[:, 0])))
        rows = (positions + length * paddle.arange(samples).unsqueeze(1)).flatten()
        chosen = paddle.gather(features.flatten(0, 1), rows)
        masked = network.nm(functional.gelu(network.mlm(chosen)))
        return _tied_head(network, masked) + network.head_bias, next_logits

    norm, hidden = partial(nn.LayerNorm, sizes.hidden, epsilon=BERT_EPSILON), sizes.hidden
    zeros = nn.initializer.Constant(0.0)
    return composed(
        nn.Layer,
        forward,
        wte=_embedding(sizes.vocabulary, sizes),
        wpe=_embedding(sizes.positions, sizes),
        wse=_embedding(2, sizes),
        ne=norm(),
        blocks=_blocks(sizes, lambda: norm_last(nn.Layer, _attention(sizes, False), _feed_forward(sizes, False), norm)),
        pool=_linear(hidden, hidden),
        nsp=_linear(hidden, 2),
        mlm=_linear(hidden, hidden),
        nm=norm(),
        head_bias=paddle.create_parameter([sizes.vocabulary], "float32", default_initializer=zeros),
    )


def _tied_head(network: Any, features: Any) -> Any:
    """Return the logits of features by the embedding of tokens, which is the head."""
    import paddle

    return paddle.matmul(features, network.wte.weight, transpose_y=True)


def _blocks(sizes: Sizes, block: Callable[[], Any]) -> Any:
    from paddle.nn import LayerList

    return LayerList([block() for _ in range(sizes.layers)])


def _attention(sizes: Sizes, is_causal: bool) -> Any:
    """Return attention with biases and as many heads of keys as of queries: features [N, T, h] to [N, T, h]."""
    from paddle.nn import Layer, functional

    def forward(attention: Any, features: Any) -> Any:
        matrices = (attention.wq, attention.wk, attention.wv)
        queries, keys, values = (_heads(matrix(features), sizes) for matrix in matrices)
        scores = (queries / math.sqrt(sizes.head)).matmul(keys, transpose_y=True)
        if is_causal:
            scores = scores + _causal_mask(scores)
        mixed = functional.softmax(scores).matmul(values)
        return attention.wo(mixed.transpose([0, 2, 1, 3]).flatten(2))

    hidden = sizes.hidden
    matrices = {name: _linear(hidden, hidden) for name in ("wq", "wk", "wv")}
    return composed(Layer, forward, **matrices, wo=_linear(hidden, hidden, sizes))


def _heads(features: Any, sizes: Sizes) -> Any:
    """Return features [N, T, h] by heads, [N, a, T, d]."""
    samples, length, _ = features.shape
    return features.reshape([samples, length, -1, sizes.head]).transpose([0, 2, 1, 3])


def _causal_mask(scores: Any) -> Any:
    """Return what keeps a token from seeing later ones, [T, T], in the number format of scores [N, a, T, T]."""
    import paddle

    length = scores.shape[-1]
    return paddle.triu(paddle.full([length, length], MASKED_OUT, scores.dtype), 1)


def _feed_forward(sizes: Sizes, is_approximate: bool) -> Any:
    """Return a feed-forward network of two matrices, with GELU as it is or approximated by a hyperbolic tangent."""
    from paddle.nn import Layer, functional

    def forward(network: Any, features: Any) -> Any:
        return network.w2(functional.gelu(network.w1(features), approximate=is_approximate))

    hidden, inner = sizes.hidden, sizes.inner
    return composed(Layer, forward, w1=_linear(hidden, inner), w2=_linear(inner, hidden, sizes))


def _embedding(rows: int, sizes: Sizes) -> Any:
    from paddle.nn import Embedding, initializer

    return Embedding(rows, sizes.hidden, weight_attr=initializer.Normal(0.0, DEVIATION))


def _linear(inputs: int, outputs: int, residual_of: Sizes | None = None) -> Any:
    """Return a linear layer; one whose outputs are added to the residual of a network has smaller weights."""
    from paddle.nn import Linear, initializer

    deviation = DEVIATION / math.sqrt(2 * residual_of.layers) if residual_of else DEVIATION
    return Linear(inputs, outputs, weight_attr=initializer.Normal(0.0, deviation), bias_attr=initializer.Constant(0.0))
