"""BERT in TensorFlow: the parts of ``_torch_transformer.py``, whose parameters are made in the same order."""

import math
from collections.abc import Callable
from typing import Any

from dlperf_study.training.models._sequences import BERT_EPSILON, DEVIATION, Sizes
from dlperf_study.training.models._tensorflow_layers import Layers

#: ``part(features)`` returns features [N, T, h].
Part = Callable[[Any], Any]


class Transformer(Layers):
    """Makes the parts of a network of these sizes, and collects their variables; see ``Layers``."""

    def __init__(self, seed: int, sizes: Sizes) -> None:
        super().__init__(seed, "nhwc")
        self._sizes = sizes
        self._residual_deviation = DEVIATION / math.sqrt(2 * sizes.layers)

    def embedding(self, rows: int) -> Any:
        """Return a matrix [rows, h]."""
        return self._normal((rows, self._sizes.hidden), DEVIATION)

    def bias(self, count: int) -> Any:
        """Return a vector of zeros."""
        return self._constant(count, 0.0)

    def matrix(self, inputs: int, outputs: int, deviation: float = DEVIATION) -> Part:
        """Return a linear layer: one product of all tokens."""
        weight, offsets = self._normal((inputs, outputs), deviation), self.bias(outputs)

        def linear(features: Any) -> Any:
            rows = self._tf.reshape(features, [-1, inputs])
            product = self._tf.matmul(rows, self._tf.cast(weight, features.dtype)) + self._tf.cast(
                offsets, features.dtype
            )
            return self._tf.reshape(product, self._tf.concat([self._tf.shape(features)[:-1], [outputs]], 0))

        return linear

    def norm(self) -> Part:
        """Return a layer norm, always in float32."""
        scale, offset = self._constant(self._sizes.hidden, 1.0), self.bias(self._sizes.hidden)

        def layer_norm(features: Any) -> Any:
            exact = self._tf.cast(features, self._tf.float32)
            mean, variance = self._tf.nn.moments(exact, [-1], keepdims=True)
            normalised = self._tf.nn.batch_normalization(
                exact,
                mean,
                variance,
                self._tf.convert_to_tensor(offset),
                self._tf.convert_to_tensor(scale),
                BERT_EPSILON,
            )
            return self._tf.cast(normalised, features.dtype)

        return layer_norm

    def block(self) -> Part:
        """Return a block that normalises the sums behind its parts."""
        first_norm, attention = self.norm(), self.attention()
        second_norm, feed_forward = self.norm(), self.feed_forward()

        def block(features: Any) -> Any:
            features = first_norm(features + attention(features))
            return second_norm(features + feed_forward(features))

        return block

    def attention(self) -> Part:
        """Return attention with biases, which sees the whole sequence."""
        sizes = self._sizes
        matrices = [self.matrix(sizes.hidden, sizes.hidden) for _ in range(3)]
        output = self.matrix(sizes.hidden, sizes.hidden, self._residual_deviation)

        def attention(features: Any) -> Any:
            queries, keys, values = (self._heads(matrix(features)) for matrix in matrices)
            scores = self._tf.matmul(queries / math.sqrt(sizes.head), keys, transpose_b=True)
            shares = self._tf.cast(self._tf.nn.softmax(self._tf.cast(scores, self._tf.float32)), features.dtype)
            mixed = self._tf.transpose(self._tf.matmul(shares, values), [0, 2, 1, 3])
            return output(self._tf.reshape(mixed, self._tf.shape(features)))

        return attention

    def feed_forward(self) -> Part:
        """Return a feed-forward network of two matrices with GELU."""
        sizes = self._sizes
        first = self.matrix(sizes.hidden, sizes.inner)
        second = self.matrix(sizes.inner, sizes.hidden, self._residual_deviation)
        return lambda features: second(self._tf.nn.gelu(first(features)))

    def _heads(self, features: Any) -> Any:
        samples, length = self._tf.shape(features)[0], self._tf.shape(features)[1]
        by_head = self._tf.reshape(features, [samples, length, self._sizes.heads, self._sizes.head])
        return self._tf.transpose(by_head, [0, 2, 1, 3])


class Bert:
    """BERT with the sum of two mean cross-entropies: of masked tokens, and of the next sentence.

    ``parameters`` are its trainable variables in order; ``statistics`` is empty.
    """

    def __init__(self, seed: int, sizes: Sizes) -> None:
        made = Transformer(seed, sizes)
        self.parameters, self.statistics = made.parameters, made.statistics
        self._tokens, self._positions, self._segments = map(made.embedding, (sizes.vocabulary, sizes.positions, 2))
        self._first_norm = made.norm()
        self._blocks = [made.block() for _ in range(sizes.layers)]
        self._pool, self._next_sentence = made.matrix(sizes.hidden, sizes.hidden), made.matrix(sizes.hidden, 2)
        self._transform, self._last_norm = made.matrix(sizes.hidden, sizes.hidden), made.norm()
        self._head_bias = made.bias(sizes.vocabulary)

    def loss(self, tokens: Any, positions: Any, labels: Any, is_next: Any, number_format: Any = None) -> Any:
        """Return the mean loss, float32."""
        # Matrix products compute in ``number_format``, float32 if it is left out.
        import tensorflow as tf

        features = self._features(tokens, number_format or tf.float32)
        chosen = tf.gather(features, positions, batch_dims=1)
        masked = self._last_norm(tf.nn.gelu(self._transform(chosen)))
        head = tf.cast(self._tokens, features.dtype)
        rows = tf.reshape(masked, [-1, head.shape[1]])
        logits = tf.matmul(rows, head, transpose_b=True) + tf.cast(self._head_bias, features.dtype)
        next_logits = self._next_sentence(tf.tanh(self._pool(features[:, 0])))
        return _mean_entropy(logits, tf.reshape(labels, [-1])) + _mean_entropy(next_logits, is_next)

    def _features(self, tokens: Any, number_format: Any) -> Any:
        import tensorflow as tf

        length = tokens.shape[1]
        # The second half is the second sentence.
        segment = [int(index >= length // 2) for index in range(length)]
        positions = tf.convert_to_tensor(self._positions)[:length] + tf.gather(self._segments, segment)
        features = self._first_norm(tf.cast(tf.gather(self._tokens, tokens) + positions, number_format))
        for block in self._blocks:
            features = block(features)
        return features


def _mean_entropy(logits: Any, labels: Any) -> Any:
    import tensorflow as tf

    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.cast(logits, tf.float32)))
