"""Llama: rotated positions, root-mean-square norms, gated feed-forward networks, grouped queries, no biases.

Touvron et al., "Llama 2", 2023; Grattafiori et al., "The Llama 3 Herd of Models", 2024. The stretched frequencies of
Llama 3.1 and later are not: they are a table of numbers, and cost nothing.
"""

from typing import Any

from dlperf_study.training.models._sequences import (
    NEXT_TOKEN,
    SequenceConfiguration,
    SequenceModel,
    Sizes,
    decoder_flops,
    recomputed_flops,
)

#: The matrices of a gated feed-forward network.
MATRICES = 3


def parameters(sizes: Sizes) -> int:
    """Return the trainable parameters: V h, twice if untied, + L (h a d + 2 h k d + a d h + 3 h f + 2h) + h."""
    hidden = sizes.hidden
    block = sizes.attention_weights + MATRICES * hidden * sizes.inner + 2 * hidden
    return sizes.vocabulary * hidden * (1 if sizes.tied else 2) + sizes.layers * block + hidden


def flops(sizes: Sizes, tokens: int, masked_positions: int) -> float:
    """Return the FLOPs of one sequence, of which all tokens are predicted."""
    return decoder_flops(sizes, MATRICES, tokens)


def flops_again(sizes: Sizes, tokens: int) -> float:
    """Return the FLOPs of one sequence that recomputation of its blocks adds, which end in a matrix."""
    return recomputed_flops(sizes, MATRICES, tokens, repeats_last=False)


def model(name: str, display_name: str, sizes: Sizes, source: str) -> SequenceModel:
    """Return a model of these sizes; ``source`` is who published them."""

    def build_torch(configuration: SequenceConfiguration, rank: int, world_size: int) -> Any:
        from dlperf_study.training.models._torch_transformer import llama_network, next_token_module

        return next_token_module(llama_network(sizes, configuration.sequence_length))

    return SequenceModel(
        name, display_name, sizes, NEXT_TOKEN, parameters(sizes), source, flops, flops_again, {"torch": build_torch}
    )
