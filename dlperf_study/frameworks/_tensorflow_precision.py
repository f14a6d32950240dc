"""Number formats in TensorFlow: TF32, loss scaling, and in what a network really computes."""

from collections.abc import Callable
from typing import Any

from dlperf_study.frameworks._base import LossScaling
from dlperf_study.frameworks._number_formats import FIRST_LOSS_SCALE, GROWTH_STEPS, STATIC_LOSS_SCALE, Output
from dlperf_study.models._tensorflow_layers import CHANNELS_LAST
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.precision import COMPUTED_IN, FULL

#: From [outputs, inputs, k, k] to [k, k, inputs, outputs].
FILTERS = (2, 3, 1, 0)


def set_tf32(configuration: Configuration) -> None:
    """Switch TF32 on or off; CPUs have none."""
    import tensorflow as tf

    tf.config.experimental.enable_tensor_float_32_execution(configuration.precision == "tf32")


def computed_in(configuration: Configuration) -> Any:
    """Return the type of what convolutions and linear layers compute."""
    import tensorflow as tf

    return tf.float32 if configuration.precision in FULL else getattr(tf, COMPUTED_IN[configuration.precision])


class LossScaler:
    """Scales the loss as a configuration asks, and counts the steps that updated nothing.

    Its methods build graphs; its state is in ``variables``, one of each for a rank. All ranks decide alike, for they
    decide by exchanged gradients.
    """

    def __init__(self, configuration: Configuration) -> None:
        import tensorflow as tf

        self._static, self.variables = configuration.loss_scaling == "static", list[Any]()
        self.is_enabled = configuration.loss_scaling != "none"
        if self.is_enabled:
            scale = STATIC_LOSS_SCALE if self._static else FIRST_LOSS_SCALE
            self._scale, self._skipped_steps = tf.Variable(scale, dtype=tf.float32), tf.Variable(0, dtype=tf.int64)
            self._steps_since_change = tf.Variable(0, dtype=tf.int64)
            self.variables = [self._scale, self._skipped_steps, self._steps_since_change]

    def scaled(self, loss: Any) -> Any:
        """Return the loss whose gradients are to be exchanged."""
        return loss * self._scale if self.is_enabled else loss

    def update(self, gradients: list[Any], update: Callable[[list[Any]], None]) -> None:
        """Call ``update`` with the gradients of the loss itself if they are finite, and adapt the scale."""
        import tensorflow as tf

        if not self.is_enabled:
            update(gradients)
            return
        unscaled = [gradient / self._scale for gradient in gradients]
        is_finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(gradient)) for gradient in unscaled])

        tf.cond(is_finite, lambda: self._updated(unscaled, update), self._skipped)

    def state(self) -> LossScaling | None:
        """Return the scale and the number of skipped steps, or None without loss scaling."""
        if not self.is_enabled:
            return None
        return LossScaling(float(self._scale), int(self._skipped_steps))

    def _updated(self, gradients: list[Any], update: Callable[[list[Any]], None]) -> Any:
        """Update; double the scale after enough steps that did."""
        import tensorflow as tf

        update(gradients)
        if not self._static:
            steps = self._steps_since_change + 1
            is_doubled = steps >= GROWTH_STEPS
            self._scale.assign(tf.where(is_doubled, 2 * self._scale, self._scale))
            self._steps_since_change.assign(tf.where(is_doubled, tf.zeros_like(steps), steps))
        return tf.constant(True)

    def _skipped(self) -> Any:
        """Count a step that updates nothing; halve the scale."""
        import tensorflow as tf

        self._skipped_steps.assign_add(1)
        if not self._static:
            self._scale.assign(self._scale / 2)
            self._steps_since_change.assign(0)
        return tf.constant(False)


def outputs(graph: Any) -> list[Output]:
    """Return what a graph says of the outputs of its convolutions; without these, of its matrix products."""

    definition = graph.as_graph_def()
    nodes = [*definition.node]
    for function in definition.library.function:
        nodes += function.node_def
    for product in ("Conv2D", "MatMul"):
        if observed := [_output(node) for node in nodes if node.op == product]:
            return observed
    return []


def _output(node: Any) -> Output:
    import tensorflow as tf

    number_format = tf.as_dtype(node.attr["T"].type).name
    return Output(number_format, node.attr["data_format"].s.decode().lower() if node.op == "Conv2D" else "")


def products(images: Any, weights: Any, number_format: str) -> list[Any]:
    """Return a convolution and a matrix product: ``Products`` of ``_number_formats.py``."""
    import tensorflow as tf

    channels_last = tf.transpose(tf.cast(images, number_format), CHANNELS_LAST)
    filters = tf.transpose(tf.cast(weights, number_format), FILTERS)
    convolution = tf.nn.conv2d(channels_last, filters, strides=1, padding="VALID")
    rows = tf.reshape(channels_last, [len(images), -1])
    return [tf.cast(tensor, tf.float64).numpy() for tensor in (convolution, rows @ tf.transpose(rows))]
