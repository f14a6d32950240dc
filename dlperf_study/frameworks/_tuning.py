"""What the libraries share of the parameters in ``TUNED``: their levels, and what a device does not have."""

from collections.abc import Iterator

from dlperf_study.frameworks._number_formats import Output
from dlperf_study.study.configuration import PARAMETERS, Configuration
from dlperf_study.study.training_parameters import LIBRARYS_CHOICE

AUTOTUNING = PARAMETERS["cudnn_autotune"].levels


def device_obstacles(configuration: Configuration, device: str) -> Iterator[str]:
    """Yield why cuDNN tries no algorithms on a device."""
    level = configuration.cudnn_autotune
    if level != LIBRARYS_CHOICE and device != "gpu":
        yield f"cudnn_autotune {level}: cuDNN is a library for NVIDIA GPUs, and computes nothing on a CPU"


def observed_memory_format(outputs: list[Output]) -> dict[str, str]:
    """Return the memory format of the first output that was observed, as ``tuning`` of a trainer does."""
    return {"memory_format": outputs[0].memory_format} if outputs and outputs[0].memory_format else {}
