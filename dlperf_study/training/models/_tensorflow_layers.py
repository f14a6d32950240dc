"""Parts of the networks in TensorFlow: Paddle's layers in Paddle's order, started as Paddle starts them.

Keras is not used: its version 3 builds no graphs for sessions, which parameter servers need, and the batch norms of its
ranks communicate statistics, which those of the other libraries do not.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

#: Of batch norms, as Paddle and PyTorch have them: what is added to a variance, and the share of a new batch.
EPSILON, STATISTICS_UPDATE = 1e-5, 0.1
#: From [N, S, S, C] to [N, C, S, S], and back.
CHANNELS_FIRST, CHANNELS_LAST = (0, 3, 1, 2), (0, 2, 3, 1)


@dataclass
class ForwardPass:
    """One forward pass: whether dropout drops and statistics follow, and the updates of these statistics."""

    is_training: bool = True
    updates: list[Any] = field(default_factory=list)


#: ``layer(features, forward_pass)`` returns features; images are [N, height, width, channels], or channels first.
Layer = Callable[[Any, ForwardPass], Any]


class Network:
    """A network with the mean softmax cross-entropy of its logits [N, classes].

    ``parameters`` are its trainable variables in order, ``statistics`` those of its batch norms.
    """

    def __init__(self, layers: "Layers", network: Layer) -> None:
        self.parameters, self.statistics = layers.parameters, layers.statistics
        self._network = network

    def loss(self, images: Any, labels: Any, number_format: Any = None, is_training: bool = True) -> Any:
        """Return the mean loss, float32."""
        # Convolutions and linear layers compute in ``number_format``, float32 if it is left out.
        import tensorflow as tf

        forward_pass = ForwardPass(is_training)
        logits = self._network(tf.cast(images, number_format or tf.float32), forward_pass)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.cast(logits, tf.float32))
        with tf.control_dependencies(forward_pass.updates):
            return tf.reduce_mean(losses)


class Layers:
    """Makes layers under the names of ``paddle.nn``, and collects their variables in the order in which it makes them.

    Initial values depend on ``seed`` and this order alone, so that they are the same on every rank.
    ``memory_format`` is that of images and features: ``nhwc``, or ``nchw`` with channels first. Parameters have the
    same shapes in both. ``convolution_biases``: whether a convolution before a batch norm has a bias.
    """

    def __init__(self, seed: int, memory_format: str, convolution_biases: bool = False) -> None:
        import tensorflow as tf

        self._tf: Any = tf
        self.parameters: list[Any] = []
        self.statistics: list[Any] = []
        self._seed, self._convolution_biases = seed, convolution_biases
        self._format, self._axes = memory_format.upper(), memory_format

    def Conv2D(
        self,
        inputs: int,
        outputs: int,
        kernel: int,
        stride: int = 1,
        padding: int = 0,
        groups: int = 1,
        bias: bool = True,
    ) -> Layer:
        """Return a square convolution."""
        deviation = math.sqrt(2 / (inputs * kernel**2))
        weight = self._normal((kernel, kernel, inputs // groups, outputs), deviation)
        offsets = self._constant(outputs, 0.0) if bias else None
        options = {"padding": self._paddings(padding), "data_format": self._format}

        def convolution(images: Any, forward_pass: ForwardPass) -> Any:
            kernels = self._tf.cast(weight, images.dtype)
            if groups > 1:
                by_channel = self._tf.transpose(kernels, [0, 1, 3, 2])
                features = self._tf.nn.depthwise_conv2d(images, by_channel, self._by_axis((1, 1), stride), **options)
            else:
                features = self._tf.nn.conv2d(images, kernels, stride, **options)
            if offsets is None:
                return features
            return self._tf.nn.bias_add(features, self._tf.cast(offsets, images.dtype), self._format)

        return convolution

    def BatchNorm2D(self, channels: int) -> Layer:
        """Return a batch norm, always in float32."""
        scale, offset = self._constant(channels, 1.0), self._constant(channels, 0.0)
        mean, variance = self._statistic(channels, 0.0), self._statistic(channels, 1.0)

        def batch_norm(images: Any, forward_pass: ForwardPass) -> Any:
            normalised, new_mean, new_variance = self._tf.compat.v1.nn.fused_batch_norm(
                images,
                *(self._tf.convert_to_tensor(variable) for variable in (scale, offset, mean, variance)),
                epsilon=EPSILON,
                data_format=self._format,
                is_training=forward_pass.is_training,
                exponential_avg_factor=STATISTICS_UPDATE if forward_pass.is_training else 1.0,
            )
            if forward_pass.is_training:
                forward_pass.updates += [mean.assign(new_mean), variance.assign(new_variance)]
            return normalised

        return batch_norm

    def BatchNorm1D(self, channels: int) -> Layer:
        """Return a batch norm of features [N, channels]."""
        of_images = self.BatchNorm2D(channels)

        def batch_norm(features: Any, forward_pass: ForwardPass) -> Any:
            images = self._tf.reshape(features, self._by_axis((-1, channels), 1))
            return self._tf.reshape(of_images(images, forward_pass), [-1, channels])

        return batch_norm

    def Linear(self, inputs: int, outputs: int) -> Layer:
        """Return a linear layer; its weight is [inputs, outputs]."""
        weight, offsets = self._glorot(inputs, outputs), self._constant(outputs, 0.0)

        def linear(features: Any, forward_pass: ForwardPass) -> Any:
            return features @ self._tf.cast(weight, features.dtype) + self._tf.cast(offsets, features.dtype)

        return linear

    def Dropout(self, rate: float) -> Layer:
        """Return what sets this share of features to zero."""

        def dropout(features: Any, forward_pass: ForwardPass) -> Any:
            if forward_pass.is_training:
                return self._tf.nn.dropout(features, rate)
            return features

        return dropout

    def MaxPool2D(self, kernel: int, stride: int, padding: int = 0) -> Layer:
        """Return a max pooling, whose padding is no feature."""
        paddings = self._paddings(padding)

        def pool(images: Any, forward_pass: ForwardPass) -> Any:
            # XLA compiles no pooling that pads by itself.
            padded = self._tf.pad(images, paddings, constant_values=images.dtype.min) if padding else images
            return self._tf.nn.max_pool2d(padded, kernel, stride, "VALID", self._format)

        return pool

    def AdaptiveAvgPool2D(self, side: int) -> Layer:
        """Return an average pooling to this side, of overlapping regions."""

        def pool(images: Any, forward_pass: ForwardPass) -> Any:
            height, width = self._axes.index("h"), self._axes.index("w")
            if side == 1:
                return self._tf.reduce_mean(images, [height, width], keepdims=True)
            if side == images.shape[height]:
                return images
            rows = self._tf.constant(pooling_weights(images.shape[height], side), images.dtype)
            pooled_axes = self._axes.replace("h", "p").replace("w", "q")
            return self._tf.einsum(f"ph,qw,{self._axes}->{pooled_axes}", rows, rows, images)

        return pool

    def Flatten(self) -> Layer:
        """Return what makes vectors of images, channel by channel."""

        def flatten(images: Any, forward_pass: ForwardPass) -> Any:
            by_channel = images if self._axes == "nchw" else self._tf.transpose(images, CHANNELS_FIRST)
            return self._tf.reshape(by_channel, [-1, math.prod(images.shape[1:])])

        return flatten

    def ReLU(self) -> Layer:
        """Return the rectifier."""
        return lambda features, forward_pass: self._tf.nn.relu(features)

    def ReLU6(self) -> Layer:
        """Return the rectifier that ends at 6."""
        return lambda features, forward_pass: self._tf.nn.relu6(features)

    def Identity(self) -> Layer:
        """Return what returns its input."""
        return lambda features, forward_pass: features

    def Sequential(self, *layers: Layer) -> Layer:
        """Return the layers one after the other."""

        def sequence(features: Any, forward_pass: ForwardPass) -> Any:
            for layer in layers:
                features = layer(features, forward_pass)
            return features

        return sequence

    def convolution_norm(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1
    ) -> tuple[Layer, Layer]:
        """Return a padded square convolution and its batch norm."""
        padding, bias = kernel // 2, self._convolution_biases
        return self.Conv2D(inputs, outputs, kernel, stride, padding, groups, bias), self.BatchNorm2D(outputs)

    def residual(self, body: Layer, shortcut: Layer) -> Layer:
        """Return a layer that adds ``body`` and ``shortcut``."""
        return lambda images, forward_pass: body(images, forward_pass) + shortcut(images, forward_pass)

    def _by_axis(self, of_samples_and_channels: tuple[Any, Any], of_sides: Any) -> list[Any]:
        """Return a value for each axis of images."""
        samples, channels = of_samples_and_channels
        values = {"n": samples, "c": channels, "h": of_sides, "w": of_sides}
        return [values[axis] for axis in self._axes]

    def _paddings(self, padding: int) -> list[list[int]]:
        """Return the padding of each axis."""
        return self._by_axis(([0, 0], [0, 0]), [padding, padding])

    def _normal(self, shape: Sequence[int], deviation: float) -> Any:
        seed = [self._seed, len(self.parameters)]
        return self._parameter(lambda: self._tf.random.stateless_normal(shape, seed, stddev=deviation))

    def _glorot(self, inputs: int, outputs: int) -> Any:
        seed, limit = [self._seed, len(self.parameters)], math.sqrt(6 / (inputs + outputs))
        return self._parameter(lambda: self._tf.random.stateless_uniform((inputs, outputs), seed, -limit, limit))

    def _constant(self, count: int, value: float) -> Any:
        return self._parameter(lambda: self._tf.fill([count], value))

    def _parameter(self, initial_value: Callable[[], Any]) -> Any:
        self.parameters.append(self._tf.Variable(initial_value))
        return self.parameters[-1]

    def _statistic(self, count: int, value: float) -> Any:
        rule = {
            "synchronization": self._tf.VariableSynchronization.ON_READ,
            "aggregation": self._tf.VariableAggregation.MEAN,
        }
        self.statistics.append(self._tf.Variable(lambda: self._tf.fill([count], value), trainable=False, **rule))
        return self.statistics[-1]


def pooling_weights(inputs: int, outputs: int) -> list[list[float]]:
    """Return the matrix that averages ``inputs`` pixels to ``outputs``."""
    matrix = []
    for pixel in range(outputs):
        first, end = pixel * inputs // outputs, -(-(pixel + 1) * inputs // outputs)
        matrix.append([1 / (end - first) if first <= k < end else 0.0 for k in range(inputs)])
    return matrix
