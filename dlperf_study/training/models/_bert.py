"""BERT in pre-training: masked tokens and next sentence, a layer norm after each part of a block, a head that is tied.

Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers", 2019. Without dropout. A fixed number of
positions of each sequence is masked, as in the data of that publication, so that all samples weigh the same: the mean
of the ranks' losses is that of the batch.
"""

from typing import Any

from dlperf_study.training.models import _transformer
from dlperf_study.training.models._sequences import (
    MASKED,
    SequenceConfiguration,
    SequenceModel,
    Sizes,
    block_parameters,
)


def parameters(sizes: Sizes) -> int:
    """Return the trainable parameters: three embeddings with their norm, blocks, pooler and both heads.

    V h + S h + 2h + 2h + L block + (h² + h) + (h² + h + 2h + V) + (2h + 2).
    """
    hidden, vocabulary = sizes.hidden, sizes.vocabulary
    embeddings = (vocabulary + sizes.positions + 2) * hidden + 2 * hidden
    pooler, masked_head = hidden**2 + hidden, hidden**2 + hidden + 2 * hidden + vocabulary
    return embeddings + sizes.layers * block_parameters(sizes) + pooler + masked_head + 2 * hidden + 2


def head_flops(sizes: Sizes, tokens: int, masked_positions: int) -> float:
    """Return the FLOPs of the heads, of which one is computed at masked positions alone, and of the pooler.

    6 (M h² + M h V + h² + 2h).
    """
    hidden = sizes.hidden
    return 6.0 * (masked_positions * (hidden**2 + hidden * sizes.vocabulary) + hidden**2 + 2 * hidden)


def model(name: str, display_name: str, sizes: Sizes, source: str) -> SequenceModel:
    """Return a model of these sizes; ``source`` is who published them."""

    def build_torch(configuration: SequenceConfiguration, rank: int, world_size: int) -> Any:
        from dlperf_study.training.models._torch_transformer import layers, tied

        nn = layers()
        return _transformer.masked_tokens(nn, tied(_transformer.bert(nn, sizes), sizes))

    def build_paddle(configuration: SequenceConfiguration, rank: int, world_size: int) -> Any:
        from dlperf_study.training.models._paddle_transformer import layers

        nn = layers()
        return _transformer.masked_tokens(nn, _transformer.bert(nn, sizes))

    def build_tensorflow(configuration: SequenceConfiguration, rank: int, world_size: int) -> Any:
        from dlperf_study.training.models._tensorflow_transformer import Bert

        return Bert(configuration.seed, sizes)

    builders = {"torch": build_torch, "paddle": build_paddle, "tensorflow": build_tensorflow}
    counted = (parameters(sizes), source)
    # Its blocks end in a norm.
    return SequenceModel(
        name, display_name, sizes, MASKED, *counted, builders, repeats_last=True, head_flops=head_flops
    )
