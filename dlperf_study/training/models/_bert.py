"""BERT in pre-training: masked tokens and next sentence, a layer norm after each part of a block, a head that is tied.

Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers", 2019. Without dropout. A fixed number of
positions of each sequence is masked, as in the data of that publication, so that all samples weigh the same: the mean
of the ranks' losses is that of the batch.
"""

from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.training.models import _sequences, _transformer


def parameters(sizes: _sequences.Sizes) -> int:
    """Return the trainable parameters: three embeddings with their norm, blocks, pooler and both heads."""
    # V h + S h + 2h + 2h + L block + (h² + h) + (h² + h + 2h + V) + (2h + 2).
    hidden, vocabulary = sizes.hidden, sizes.vocabulary
    embeddings = (vocabulary + sizes.positions + 2) * hidden + 2 * hidden
    pooler, masked_head = hidden**2 + hidden, hidden**2 + hidden + 2 * hidden + vocabulary
    return embeddings + sizes.layers * _sequences.block_parameters(sizes) + pooler + masked_head + 2 * hidden + 2


def head_flops(sizes: _sequences.Sizes, tokens: int, masked_positions: int) -> float:
    """Return the FLOPs of both heads and the pooler."""
    # 6 (M h² + M h V + h² + 2h).
    hidden = sizes.hidden
    return 6.0 * (masked_positions * (hidden**2 + hidden * sizes.vocabulary) + hidden**2 + 2 * hidden)


def model(name: str, display_name: str, sizes: _sequences.Sizes, source: str) -> _sequences.SequenceModel:
    """Return a model of sizes that ``source`` published."""

    def build_tensorflow(configuration: Configuration, rank: int, world_size: int) -> Any:
        from dlperf_study.training.models._tensorflow_transformer import Bert

        return Bert(configuration.seed, sizes)

    builders = _transformer.builders(_transformer.bert, _transformer.masked_tokens, sizes)
    builders["tensorflow"] = build_tensorflow
    counted = (parameters(sizes), source)
    # Its blocks end in a norm.
    return _sequences.SequenceModel(
        name, display_name, sizes, _sequences.MASKED, *counted, builders, repeats_last=True, head_flops=head_flops
    )
