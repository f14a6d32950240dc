"""Rules of an update in TensorFlow: those of Paddle and PyTorch, on variables one by one."""

from typing import Any

from dlperf_study.programs.frameworks import _training
from dlperf_study.study.configuration import Configuration

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
        """Apply a gradient to a parameter, of which ``kept`` is kept."""
        if self._rule == "adamw":
            self._adamw(parameter, gradient, *kept)
            return
        for velocity in kept:
            gradient = velocity.assign(_training.MOMENTUM * velocity + gradient)
        parameter.assign_sub(_training.LEARNING_RATE * gradient)

    def _adamw(self, parameter: Any, gradient: Any, mean: Any, square: Any) -> None:
        import tensorflow as tf

        [steps] = self._steps
        new_mean = mean.assign(MEAN_DECAY * mean + (1 - MEAN_DECAY) * gradient)
        new_square = square.assign(SQUARE_DECAY * square + (1 - SQUARE_DECAY) * tf.square(gradient))
        unbiased_mean = new_mean / (1 - MEAN_DECAY**steps)
        root = tf.sqrt(new_square / (1 - SQUARE_DECAY**steps))
        direction = unbiased_mean / (root + EPSILON) + WEIGHT_DECAY * parameter
        parameter.assign_sub(_training.ADAM_LEARNING_RATE * direction)
