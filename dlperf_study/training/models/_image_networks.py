"""The builders of a network of images that is written once for all libraries."""

from collections.abc import Callable
from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.training.models._base import Builder

#: ``network(nn, configuration)`` returns a network in a library's layers; ``nn`` names them as ``paddle.nn`` does.
BuildNetwork = Callable[[Any, Configuration], Any]


def image_builders(
    network: BuildNetwork, paddle: Callable[[Configuration], Any], convolution_biases: bool = False
) -> dict[str, Builder]:
    """Return the builders of a network with cross-entropy, by library."""

    def build_paddle(configuration: Configuration, rank: int, world_size: int) -> Any:
        from dlperf_study.training.models._paddle_layers import cross_entropy_layer

        return cross_entropy_layer(paddle(configuration))

    def build_torch(configuration: Configuration, rank: int, world_size: int) -> Any:
        from dlperf_study.training.models._torch_layers import by_paddle_names, cross_entropy_module, initialised

        return cross_entropy_module(initialised(network(by_paddle_names(), configuration)))

    def build_tensorflow(configuration: Configuration, rank: int, world_size: int) -> Any:
        from dlperf_study.training.models._tensorflow_layers import Layers, Network

        layers = Layers(configuration.seed, configuration.memory_format, convolution_biases)
        return Network(layers, network(layers, configuration))

    return {"paddle": build_paddle, "torch": build_torch, "tensorflow": build_tensorflow}
