"""Event files of TensorBoard, whichever program wrote them."""

from dlperf_study.logs.event_files import EVENT_ROW
from dlperf_study.logs.formats._scalars import scalar_format

FORMAT = scalar_format(
    "tensorboard",
    "TensorBoard",
    "tensorflow/tensorboard, event files (events.out.tfevents.*) of any program",
    EVENT_ROW,
    "a program that still writes, or was killed, may leave a record that is cut",
)
