"""Images that NVIDIA's DALI reads, decodes and augments, with threads of its own that Python does not hold up.

Where the library trains on a GPU, DALI decodes there and delivers the library's tensors; on a CPU it delivers numpy
arrays. It draws its own random numbers and scales by its own filters: the images are the same as those of other
sources, their order, crops and pixels are not.
"""

import re
from typing import Any

from dlperf_study.core.errors import RunError
from dlperf_study.core.user_commands import command_line, install_command
from dlperf_study.study.configuration import Configuration
from dlperf_study.training.data_loaders import _samples
from dlperf_study.training.data_loaders._base import Batch, Consumer, DataLoader, image_dataset_obstacles
from dlperf_study.training.image_datasets.class_folders import ClassFolders

#: How many images the reader chooses the next one from.
SHUFFLED = 1024
DECODER_THREADS, PREFETCH_BATCHES = 2, 2
_FAILURE = re.compile(r"^(Failed to decode.*)|encountered:\s+(.+)", re.MULTILINE)


class DaliBatches:
    """What a pipeline of DALI delivers: numpy arrays, or tensors of the library on its GPU."""

    def __init__(self, configuration: Configuration, consumer: Consumer) -> None:
        self._library, self._folder = consumer.library, ""
        device_index = _device_index(consumer.library)
        self._on_gpu = device_index is not None
        self._pipeline = _pipeline(configuration, consumer, device_index)
        self._outputs: Any = ()

    def next(self) -> Batch:
        try:
            self._outputs = self._pipeline.run()
        except RuntimeError as error:
            command = command_line("make-data FOLDER")
            raise RunError(f"DALI: {_reason(error)}; `{command}` names broken files") from error
        # They are valid until the next run.
        images, labels = (output.as_tensor() for output in self._outputs)
        return self._arrays(images, labels)

    def _arrays(self, images: Any, labels: Any) -> Batch:
        import numpy as np

        if self._on_gpu:
            from_dlpack = _from_dlpack(self._library)
            return from_dlpack(images), from_dlpack(labels).reshape([-1])
        return np.asarray(images), np.asarray(labels).reshape(-1)

    def close(self) -> None:
        self._outputs = self._pipeline = None


def _pipeline(configuration: Configuration, consumer: Consumer, device_index: int | None) -> Any:
    """Return the pipeline of a rank and its GPU."""
    from nvidia.dali import Pipeline, fn, types

    pipeline = Pipeline(
        batch_size=configuration.batch_per_device,
        num_threads=DATA_LOADER.setting(configuration, "decoder_threads"),
        prefetch_queue_depth=DATA_LOADER.prefetch(configuration),
        device_id=device_index,
        seed=configuration.seed * consumer.replicas + consumer.replica,
    )
    with pipeline:
        files, labels = _files(configuration, consumer)
        labels = fn.cast(labels, dtype=types.INT64)
        on_gpu = device_index is not None
        images = _augmented(files, configuration.image_size, on_gpu)
        pipeline.set_outputs(images, labels.gpu() if on_gpu else labels)
    pipeline.build()
    return pipeline


def _files(configuration: Configuration, consumer: Consumer) -> Any:
    """Return the nodes for the files and labels of a rank."""
    from nvidia.dali import fn

    images = _samples.image_dataset_of_this_process()
    if not isinstance(images, ClassFolders):
        raise RunError(f"data_loader dali reads folders of JPEGs; {images.path} has another format")
    return fn.readers.file(
        files=images.files,
        labels=images.labels.tolist(),
        random_shuffle=True,
        initial_fill=SHUFFLED,
        shard_id=consumer.replica,
        num_shards=consumer.replicas,
        seed=configuration.seed,
    )


def _augmented(files: Any, size: int, on_gpu: bool) -> Any:
    """Return the node for images [N, 3, size, size] float32."""
    from nvidia.dali import fn, types

    decoder, processor = ("mixed", "gpu") if on_gpu else ("cpu", "cpu")
    decoded = fn.decoders.image(files, device=decoder, output_type=types.RGB)
    crops = fn.random_resized_crop(
        decoded, device=processor, size=[size, size], random_area=_samples.AREA, random_aspect_ratio=_samples.RATIO
    )
    return fn.crop_mirror_normalize(
        crops,
        device=processor,
        dtype=types.FLOAT,
        output_layout="CHW",
        mirror=fn.random.coin_flip(probability=0.5),
        mean=[_samples.LARGEST_VALUE * value for value in _samples.MEAN],
        std=[_samples.LARGEST_VALUE * value for value in _samples.DEVIATION],
    )


def _device_index(library: str) -> int | None:
    """Return the GPU of this process; None on a CPU."""
    if library == "torch":
        import torch

        if torch.cuda.is_available():
            return int(torch.cuda.current_device())
        return None
    import paddle

    device = str(paddle.get_device())
    if device.startswith("gpu"):
        return int(device.partition(":")[2])
    return None


def _from_dlpack(library: str) -> Any:
    """Return what takes over an array on a GPU."""
    if library == "torch":
        from torch.utils import dlpack
    else:
        from paddle.utils import dlpack
    return dlpack.from_dlpack


def _reason(error: RuntimeError) -> str:
    """Return the line of DALI's message that says what failed."""
    match = _FAILURE.search(str(error))
    if match:
        return match[1] or match[2]
    return str(error).splitlines()[-1]


def batches_ahead(configuration: Configuration) -> int:
    """Return how many batches the pipeline prepares."""
    return DATA_LOADER.prefetch(configuration)


DATA_LOADER = DataLoader(
    name="dali",
    display_name="DALI",
    open=DaliBatches,
    obstacles=image_dataset_obstacles,
    libraries=("paddle", "torch"),
    packages=("nvidia-dali-cuda120",),
    batches_ahead=batches_ahead,
    remedy=install_command("dali"),
    settings={"image_dataset": "none", "decoder_threads": DECODER_THREADS, "prefetch_batches": PREFETCH_BATCHES},
)
