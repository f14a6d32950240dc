"""GPT-2: learned positions, a layer norm before each part of a block, biases, and a head that is the embedding.

Radford et al., "Language Models are Unsupervised Multitask Learners", 2019. Without dropout.
"""

from typing import Any

from dlperf_study.training.models import _transformer
from dlperf_study.training.models._sequences import (
    NEXT_TOKEN,
    SequenceConfiguration,
    SequenceModel,
    Sizes,
    block_parameters,
)


def parameters(sizes: Sizes) -> int:
    """Return the trainable parameters: embeddings, blocks and the last norm, V h + S h + L block + 2h."""
    hidden = sizes.hidden
    return (sizes.vocabulary + sizes.positions) * hidden + sizes.layers * block_parameters(sizes) + 2 * hidden


def model(name: str, display_name: str, sizes: Sizes, source: str) -> SequenceModel:
    """Return a model of these sizes; ``source`` is who published them."""

    def build_torch(configuration: SequenceConfiguration, rank: int, world_size: int) -> Any:
        from dlperf_study.training.models._torch_transformer import layers, tied

        nn = layers()
        return _transformer.next_tokens(nn, tied(_transformer.gpt(nn, sizes), sizes))

    def build_paddle(configuration: SequenceConfiguration, rank: int, world_size: int) -> Any:
        from dlperf_study.training.models._paddle_transformer import layers

        nn = layers()
        return _transformer.next_tokens(nn, _transformer.gpt(nn, sizes))

    builders = {"torch": build_torch, "paddle": build_paddle}
    return SequenceModel(name, display_name, sizes, NEXT_TOKEN, parameters(sizes), source, builders)
