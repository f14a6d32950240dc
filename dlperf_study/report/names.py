"""Human names of the words in a study file; a word that isn't here is shown with spaces for underscores."""

_NAMES = {
    "paddle_collective": "PaddlePaddle collective",
    "paddle_ps": "PaddlePaddle parameter server",
    "horovod_torch": "Horovod (PyTorch)",
    "torch_ddp": "PyTorch DDP",
    "resnet50": "ResNet-50",
    "vgg16": "VGG16",
    "mobilenet_v2": "MobileNetV2",
    "resnet50_convolution_biases": "ResNet-50 with convolution biases",
    "vgg16_cifar": "VGG16 for CIFAR-10",
    "arcface_resnet50": "ArcFace on ResNet-50",
    "all_reduce": "all-reduce",
    "data_parallel": "data parallel",
    "async": "asynchronous",
    "sync": "synchronous",
    "synthetic_device": "synthetic, on the device",
    "synthetic_host": "synthetic, from the host",
    "python_queue": "Python queue",
    "python_dataset": "Python data set",
    "zmq": "ZeroMQ",
    "dali": "DALI",
    "sgd": "SGD",
    "cpu": "CPU",
    "gpu": "GPU",
    "paddle": "PaddlePaddle",
    "torch": "PyTorch",
    "horovod": "Horovod",
    "True": "yes",
    "False": "no",
}


def human(word: object) -> str:
    """Return the name a reader knows; numbers stay as they are."""
    return _NAMES.get(str(word), str(word).replace("_", " "))


def listed(words: list[str]) -> str:
    """Join words as a sentence does: ``1, 2 and 4``."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
