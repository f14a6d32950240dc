"""Llama: rotated positions, root-mean-square norms, gated feed-forward networks, grouped queries, no biases.

Touvron et al., "Llama 2", 2023; Grattafiori et al., "The Llama 3 Herd of Models", 2024. The stretched frequencies of
Llama 3.1 and later are not: they are a table of numbers, and cost nothing.
"""

from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.training.models import _transformer
from dlperf_study.training.models._sequences import NEXT_TOKEN, SequenceModel, Sizes

#: The matrices of a gated feed-forward network.
MATRICES = 3


def parameters(sizes: Sizes) -> int:
    """Return the trainable parameters: V h, twice if untied, + L (h a d + 2 h k d + a d h + 3 h f + 2h) + h."""
    hidden = sizes.hidden
    block = sizes.attention_weights + MATRICES * hidden * sizes.inner + 2 * hidden
    return sizes.vocabulary * hidden * (1 if sizes.tied else 2) + sizes.layers * block + hidden


def model(name: str, display_name: str, sizes: Sizes, source: str) -> SequenceModel:
    """Return a model of sizes that ``source`` published."""

    def build_torch(configuration: Configuration, rank: int, world_size: int) -> Any:
        from dlperf_study.training.models import _torch_transformer

        network = _torch_transformer.llama(sizes, configuration.sequence_length)
        return _transformer.next_tokens(_torch_transformer.layers(), _torch_transformer.tied(network, sizes))

    builders = {"torch": build_torch}
    return SequenceModel(name, display_name, sizes, NEXT_TOKEN, parameters(sizes), source, builders, matrices=MATRICES)
