"""Install the pinned DALI into this environment, once: `python -m tools.install_dali`."""

import sys

from tools.installer import ended
from tools.pinned_library import PinnedLibrary

#: Without a GPU, DALI needs to be told so.
PIPELINE = """
from nvidia.dali import Pipeline, fn
with Pipeline(batch_size=1, num_threads=1, device_id=None) as pipeline:
    pipeline.set_outputs(fn.constant(idata=[1]))
assert int(pipeline.run()[0].as_array()[0, 0]) == 1
"""
DALI = PinnedLibrary(
    name="dali",
    title="DALI",
    lock="requirements-dali.lock",
    package="nvidia-dali-cuda120",
    needed_mb=2000,
    purpose="DALI",
    computes=PIPELINE,
)

if __name__ == "__main__":
    sys.exit(ended(DALI.install))
