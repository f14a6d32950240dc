"""Install the pinned TensorFlow into this environment, once: `python -m tools.install_tensorflow`."""

import sys

from tools.installer import are_installed, ended, pins, say
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


def install() -> None:
    """Install it, unless its build for GPUs is here: a package of another name, with the same files."""
    if are_installed({"tensorflow": pins(TENSORFLOW.lock)[TENSORFLOW.package]}):
        say("tensorflow: its build for GPUs is installed")
        return
    TENSORFLOW.install()


if __name__ == "__main__":
    sys.exit(ended(install))
