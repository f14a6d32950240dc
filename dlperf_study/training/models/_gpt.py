"""GPT-2: learned positions, a layer norm before each part of a block, biases, and a head that is the embedding.

Radford et al., "Language Models are Unsupervised Multitask Learners", 2019. Without dropout.
"""

from dlperf_study.training.models import _transformer
from dlperf_study.training.models._sequences import NEXT_TOKEN, SequenceModel, Sizes, block_parameters


def parameters(sizes: Sizes) -> int:
    """Return the trainable parameters: embeddings, blocks and the last norm, V h + S h + L block + 2h."""
    hidden = sizes.hidden
    return (sizes.vocabulary + sizes.positions) * hidden + sizes.layers * block_parameters(sizes) + 2 * hidden


def model(name: str, display_name: str, sizes: Sizes, source: str) -> SequenceModel:
    """Return a model of sizes that ``source`` published."""
    builders = _transformer.builders(_transformer.gpt, _transformer.next_tokens, sizes)
    return SequenceModel(name, display_name, sizes, NEXT_TOKEN, parameters(sizes), source, builders)
