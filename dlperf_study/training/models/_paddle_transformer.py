"""What Paddle has of the parts of ``_transformer.py``.

Attention is two matrix products and a mask that is added: Paddle 3.0 has no fused causal attention on CPUs.
"""

import math
from types import SimpleNamespace
from typing import Any

from dlperf_study.training.models._sequences import Sizes

#: Added to the product of a query with a later key: the exponential of the sum is 0 in float16 too.
MASKED_OUT = -30_000.0


def layers() -> SimpleNamespace:
    """Return Paddle's layers; the head is the embedding."""
    import paddle
    from paddle import nn
    from paddle.nn import functional

    def heads(features: Any, size: int) -> Any:
        samples, length, _ = features.shape
        return features.reshape([samples, length, -1, size]).transpose([0, 2, 1, 3])

    def head(sizes: Sizes) -> dict[str, Any]:
        return {}

    return SimpleNamespace(
        Layer=nn.Layer,
        LayerDict=nn.LayerDict,
        Linear=nn.Linear,
        Embedding=nn.Embedding,
        LayerNorm=nn.LayerNorm,
        named_layers=nn.Layer.named_sublayers,
        fill_normal=lambda weight, deviation: weight.set_value(paddle.normal(0.0, deviation, weight.shape)),
        fill_zeros=lambda bias: bias.set_value(paddle.zeros(bias.shape)),
        attend=_attend,
        heads=heads,
        merged=lambda mixed: mixed.transpose([0, 2, 1, 3]).flatten(2),
        rows=_rows,
        head=head,
        logits=lambda network, features: paddle.matmul(features, network.wte.weight, transpose_y=True),
        positions=lambda tokens: paddle.arange(tokens.shape[1]),
        integers=lambda tensor: tensor.astype("int64"),
        tanh=paddle.tanh,
        gelu=functional.gelu,
        cross_entropy=lambda logits, targets: functional.cross_entropy(logits.astype("float32"), targets),
        zero_parameter=lambda count: paddle.create_parameter(
            [count], "float32", default_initializer=nn.initializer.Constant(0.0)
        ),
    )


def _attend(queries: Any, keys: Any, values: Any, is_causal: bool) -> Any:
    import paddle
    from paddle.nn import functional

    scores = (queries / math.sqrt(queries.shape[-1])).matmul(keys, transpose_y=True)
    if is_causal:
        length = scores.shape[-1]
        scores = scores + paddle.triu(paddle.full([length, length], MASKED_OUT, scores.dtype), 1)
    return functional.softmax(scores).matmul(values)


def _rows(features: Any, positions: Any) -> Any:
    import paddle

    samples, length, _ = features.shape
    indices = (positions + length * paddle.arange(samples).unsqueeze(1)).flatten()
    chosen = paddle.gather(features.flatten(0, 1), indices)
    return chosen.reshape([samples, -1, features.shape[-1]])
