"""A transformer as it is declared: its sizes, and its parameters and FLOPs by formula, before any library is imported.

Symbols of the formulas: h hidden, L layers, a heads, k key-value heads, d = h / a, f inner size, V vocabulary,
T tokens of a sequence.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from dlperf_study.core.wording import value_text
from dlperf_study.study.configuration import PARAMETERS, Configuration
from dlperf_study.study.parallel_parameters import FULL_CHECKPOINTING
from dlperf_study.study.parameter import IMAGES
from dlperf_study.training.models._base import Builder, BuiltByLibraries

#: What a model predicts: each next token, or the masked tokens of a sequence and whether its halves belong together.
NEXT_TOKEN, MASKED = "next_token", "masked"
#: The deviation of initial weights; those that are added to the residual have it divided by √(2 layers), as in GPT-2.
DEVIATION = 0.02
#: What is added to variances in norms.
BERT_EPSILON, GPT_EPSILON, LLAMA_EPSILON = 1e-12, 1e-5, 1e-5
#: What the counts of the models mean: that of PaLM (Chowdhery et al., 2022, appendix B).
FLOPS_SOURCE = (
    "6 x weights that multiply x tokens + 12 x layers x hidden x sequence length² for attention: full attention, as a "
    "causal mask saves nothing in this count; embeddings, norms and biases don't multiply, and the head does "
    "(Chowdhery et al., PaLM, 2022, appendix B)"
)


@dataclass(frozen=True)
class Sizes:
    """The sizes of a transformer.

    ``kv_heads``: of grouped queries; 0: as many as heads. ``ffn``: the inner size; 0: four times hidden. ``positions``:
    rows of a learned table of positions; 0: positions are rotated. ``tied``: the head is the embedding. ``theta``: the
    base of rotated positions.
    """

    layers: int
    hidden: int
    heads: int
    vocabulary: int
    kv_heads: int = 0
    ffn: int = 0
    positions: int = 0
    tied: bool = True
    theta: float = 10_000.0

    @property
    def head(self) -> int:
        """The features of a head."""
        return self.hidden // self.heads

    @property
    def groups(self) -> int:
        """The heads of keys and values."""
        return self.kv_heads or self.heads

    @property
    def inner(self) -> int:
        """The features between the matrices of a feed-forward network."""
        return self.ffn or 4 * self.hidden

    @property
    def attention_weights(self) -> int:
        """The weights of one attention: h a d + 2 h k d + a d h."""
        return 2 * self.hidden * self.head * (self.heads + self.groups)


def block_parameters(sizes: Sizes) -> int:
    """Return the parameters of one block with biases and two layer norms: 4h² + 4h + 2hf + f + h + 4h."""
    hidden, inner = sizes.hidden, sizes.inner
    attention = sizes.attention_weights + 2 * (hidden + sizes.groups * sizes.head)
    return attention + 2 * hidden * inner + inner + hidden + 4 * hidden


def flops_of_blocks(sizes: Sizes, matrices: int, tokens: int) -> float:
    """Return the FLOPs of all blocks of one sequence.

    ``matrices``: those of its feed-forward network, each h x f. 6 for each weight that multiplies a token, and
    12 L a d T² for the products of attention.
    """
    weights = sizes.attention_weights + matrices * sizes.hidden * sizes.inner
    attention = 12 * sizes.layers * sizes.heads * sizes.head * tokens**2
    return 6.0 * sizes.layers * weights * tokens + attention


def decoder_head_flops(sizes: Sizes, tokens: int, masked_positions: int) -> float:
    """Return the FLOPs of a head that predicts every token."""
    return 6.0 * sizes.hidden * sizes.vocabulary * tokens


def recomputed_flops(sizes: Sizes, matrices: int, tokens: int, repeats_last: bool) -> float:
    """Return the FLOPs that recomputation of all blocks adds."""
    # 2 for each weight that multiplies a token, and 4 L a d T² for the products of attention: Narayanan et al.,
    # "Efficient Large-Scale Language Model Training on GPU Clusters", 2021, appendix. ``repeats_last``: whether the
    # backward pass needs what the last matrix of a block, h x f, gives; else PyTorch stops before it.
    matrices_again = matrices if repeats_last else matrices - 1
    return flops_of_blocks(sizes, matrices_again, tokens) / 3


@dataclass(frozen=True)
class SequenceModel(BuiltByLibraries):
    """One network of sequences of tokens and how each library builds it.

    A builder returns a layer whose forward takes the tensors of a batch, all int64, and returns the mean loss: tokens
    [N, T] and the next tokens [N, T]; or tokens [N, T], masked positions [N, M], their tokens [N, M] and whether the
    halves belong together [N].
    ``matrices``: those of a feed-forward network; ``repeats_last``: see ``recomputed_flops``. ``head_flops``: of sizes,
    tokens and masked positions of one sequence, forward and backward.
    """

    name: str
    display_name: str
    sizes: Sizes
    task: str
    parameters: int
    parameters_source: str
    builders: Mapping[str, Builder]
    matrices: int = 2
    repeats_last: bool = False
    head_flops: Callable[[Sizes, int, int], float] = decoder_head_flops
    flops_source: str = FLOPS_SOURCE
    pools_to_pixel: ClassVar[bool] = False

    @property
    def settings(self) -> tuple[str, ...]:
        """The parameters that this network reads and others do not."""
        return ("sequence_length", *(("masked_positions",) if self.task == MASKED else ()))

    def flops(self, configuration: Configuration) -> float:
        """Return the FLOPs of one sequence of a configuration."""
        length, masked = configuration.sequence_length, configuration.masked_positions
        return flops_of_blocks(self.sizes, self.matrices, length) + self.head_flops(self.sizes, length, masked)

    def hardware_flops(self, configuration: Configuration) -> float:
        """Return the FLOPs of one sequence, recomputed ones too."""
        if configuration.activation_checkpointing != FULL_CHECKPOINTING:
            return self.flops(configuration)
        again = recomputed_flops(self.sizes, self.matrices, configuration.sequence_length, self.repeats_last)
        return self.flops(configuration) + again

    def obstacles(self, configuration: Configuration, library: str) -> Iterator[str]:
        """Yield why ``library`` can't build this model as configured."""
        yield from super().obstacles(configuration, library)
        yield from self._refused_lengths(configuration)
        for name, entry in PARAMETERS.items():
            value = getattr(configuration, name)
            if entry.samples == IMAGES and value != entry.default:
                yield f"{name} is {value_text(value)}, but model {self.name} trains on sequences, not on images"

    def _refused_lengths(self, configuration: Configuration) -> Iterator[str]:
        length, masked, positions = configuration.sequence_length, configuration.masked_positions, self.sizes.positions
        if not length:
            yield f"sequence_length is missing, but model {self.name} trains on sequences of tokens"
        elif positions and length > positions:
            yield f"sequence_length is {length}, but model {self.name} has {positions} positions"
        if length and self.task == MASKED and not 0 < masked <= length:
            yield f"masked_positions is {masked}, but model {self.name} needs 1 to {length}, of {length} tokens"
