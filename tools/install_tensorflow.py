"""Install the pinned TensorFlow into this environment, once: `python -m tools.install_tensorflow`."""

import sys

from tools.installer import ended
from tools.pinned_library import PinnedLibrary

TENSORFLOW = PinnedLibrary(
    name="tensorflow",
    title="TensorFlow",
    lock="requirements-tensorflow.lock",
    package="tensorflow-cpu",
    needed_mb=2000,
    purpose="TensorFlow",
    computes="import tensorflow as tf; assert float(tf.reduce_sum(tf.ones(2) * tf.ones(2))) == 2",
)

if __name__ == "__main__":
    sys.exit(ended(TENSORFLOW.install))
