"""An update in TensorFlow: the rules of Paddle and PyTorch, on variables one by one, and the scaling of losses."""

from collections.abc import Callable
from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.study.precision import LossScaling
from dlperf_study.training.libraries import _base

#: Of AdamW, as Paddle and PyTorch have them: of both means, of the weights in each update, and what is added to a root.
MEAN_DECAY, SQUARE_DECAY, WEIGHT_DECAY, EPSILON = 0.9, 0.999, 0.01, 1e-8
#: How many variables each rule keeps of a parameter.
KEPT = {"sgd": 0, "momentum": 1, "adamw": 2}


class Optimizer:
    """The rule of a configuration, and the variables that it changes besides the parameters.

    ``kept`` has those of each parameter, zeros at first. They are made on the device that is set.
    """

    def __init__(self, configuration: Configuration, parameters: list[Any]) -> None:
        import tensorflow as tf

        self._rule, self.kept = configuration.optimizer, list[list[Any]]()
        for parameter in parameters:
            zeros = [lambda p=parameter: tf.zeros(p.shape)] * KEPT[self._rule]
            self.kept.append([tf.Variable(zero, trainable=False) for zero in zeros])
        # AdamW divides its means by what the number of updates says of them.
        self._steps = [tf.Variable(0.0, trainable=False)] if self._rule == "adamw" else []

    @property
    def variables(self) -> list[Any]:
        """All that it changes besides the parameters."""
        return [*self._steps, *(variable for of_parameter in self.kept for variable in of_parameter)]

    def begin(self) -> None:
        """Count an update, before it is applied to all parameters."""
        for steps in self._steps:
            steps.assign_add(1.0)

    def update(self, parameter: Any, gradient: Any, *kept: Any) -> None:
        """Apply a gradient to a parameter and what is kept."""
        if self._rule == "adamw":
            self._adamw(parameter, gradient, *kept)
            return
        for velocity in kept:
            gradient = velocity.assign(_base.MOMENTUM * velocity + gradient)
        parameter.assign_sub(_base.LEARNING_RATE * gradient)

    def _adamw(self, parameter: Any, gradient: Any, mean: Any, square: Any) -> None:
        import tensorflow as tf

        [steps] = self._steps
        new_mean = mean.assign(MEAN_DECAY * mean + (1 - MEAN_DECAY) * gradient)
        new_square = square.assign(SQUARE_DECAY * square + (1 - SQUARE_DECAY) * tf.square(gradient))
        unbiased_mean = new_mean / (1 - MEAN_DECAY**steps)
        root = tf.sqrt(new_square / (1 - SQUARE_DECAY**steps))
        direction = unbiased_mean / (root + EPSILON) + WEIGHT_DECAY * parameter
        parameter.assign_sub(_base.ADAM_LEARNING_RATE * direction)


class LossScaler:
    """Scales the loss as a configuration asks, and counts the steps that updated nothing.

    Its methods build graphs; its state is in ``variables``, one of each for a rank. All ranks decide alike, for they
    decide by communicated gradients.
    """

    def __init__(self, configuration: Configuration) -> None:
        import tensorflow as tf

        self._static, self.variables = configuration.loss_scaling == "static", list[Any]()
        self.is_enabled = configuration.loss_scaling != "none"
        if self.is_enabled:
            scale = _base.FIRST_LOSS_SCALES[configuration.loss_scaling]
            self._scale, self._skipped_steps = tf.Variable(scale, dtype=tf.float32), tf.Variable(0, dtype=tf.int64)
            self._steps_since_change = tf.Variable(0, dtype=tf.int64)
            self.variables = [self._scale, self._skipped_steps, self._steps_since_change]

    def scaled(self, loss: Any) -> Any:
        """Return the loss whose gradients are to be communicated."""
        if self.is_enabled:
            return loss * self._scale
        return loss

    def update(self, gradients: list[Any], update: Callable[[list[Any]], None]) -> None:
        """Call ``update`` if gradients are finite; adapt the scale."""
        import tensorflow as tf

        if not self.is_enabled:
            update(gradients)
            return
        unscaled = [gradient / self._scale for gradient in gradients]
        is_finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(gradient)) for gradient in unscaled])

        tf.cond(is_finite, lambda: self._updated(unscaled, update), self._skipped)

    def state(self) -> LossScaling | None:
        """Return the state of loss scaling, or None."""
        if not self.is_enabled:
            return None
        return LossScaling(float(self._scale), int(self._skipped_steps))

    def _updated(self, gradients: list[Any], update: Callable[[list[Any]], None]) -> Any:
        """Update; double the scale after enough steps that did."""
        import tensorflow as tf

        update(gradients)
        if not self._static:
            steps = self._steps_since_change + 1
            is_doubled = steps >= _base.GROWTH_STEPS
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
