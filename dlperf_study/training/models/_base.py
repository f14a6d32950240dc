"""A network as it is declared, before any framework is imported, and the parts that all libraries share."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dlperf_study.core.errors import UnsupportedError
from dlperf_study.study.configuration import Configuration

# Layers put together from parts, in whatever library the parts are of.


def composed(base: Any, forward: Callable[..., Any], **parts: Any) -> Any:
    """Return a layer of ``parts`` that computes ``forward(layer, *inputs)``.

    ``base`` is the library's class of layers: ``paddle.nn.Layer`` or ``torch.nn.Module``.
    """

    class Composed(base):  # type: ignore[misc]
        def forward(self, *inputs: Any) -> Any:
            return forward(self, *inputs)

    layer = Composed()
    for name, part in parts.items():
        setattr(layer, name, part)
    return layer


def norm_first(base: Any, attention: Any, feed_forward: Any, norm: Callable[[], Any]) -> Any:
    """Return a block that normalises what goes into its parts."""

    def forward(block: Any, features: Any) -> Any:
        features = features + block.attn(block.n1(features))
        return features + block.mlp(block.n2(features))

    return composed(base, forward, n1=norm(), attn=attention, n2=norm(), mlp=feed_forward)


def norm_last(base: Any, attention: Any, feed_forward: Any, norm: Callable[[], Any]) -> Any:
    """Return a block that normalises the sums behind its parts."""

    def forward(block: Any, features: Any) -> Any:
        features = block.n1(features + block.attn(features))
        return block.n2(features + block.mlp(features))

    return composed(base, forward, n1=norm(), attn=attention, n2=norm(), mlp=feed_forward)


def without_loss(layer: Any) -> Any:
    """Return a model's layer without its loss."""
    if hasattr(layer, "network"):
        return layer.network
    return layer.backbone


# Multiply-accumulates of layers, for one sample; biases, norms and activations are left out, as is usual.


#: What the counts of the models mean; each model adds a published number for comparison.
FLOPS_SOURCE = (
    "6 x multiply-accumulates of the forward pass (2 FLOPs each, backward counted as twice the forward: "
    "Amodei and Hernandez, AI and Compute, 2018), over convolutions and fully connected layers"
)


def convolution_macs(inputs: int, outputs: int, kernel: int, output_size: int, groups: int = 1) -> int:
    """Return the count of a square convolution."""
    return inputs // groups * outputs * kernel**2 * output_size**2


def strided(size: int, stride: int) -> int:
    """Return the side of a padded layer's output."""
    return -(-size // stride)


#: Two FLOPs for a multiply-accumulate; the backward pass costs twice the forward one, so three
#: passes. Source: D. Amodei and D. Hernandez, "AI and Compute", 2018, appendix "Methods".
TRAINING_FLOPS_PER_FORWARD_MAC = 3 * 2


#: ``build(configuration, rank, world_size)`` returns a layer of the library, whose forward takes the tensors of a batch
#: and returns the mean loss, a scalar. A batch of images is [N, 3, S, S] float32 and labels [N] int64.
Builder = Callable[[Any, int, int], Any]


class BuiltByLibraries:
    """A model of which each library has a builder, and which refuses what it can't be: images' or sequences'."""

    name: str
    builders: Mapping[str, Builder]

    def builder(self, library: str) -> Builder:
        """Return what builds this model in ``library``; raises UnsupportedError for a library without a builder."""
        if library not in self.builders:
            raise UnsupportedError(self._missing_builder(library))
        build = self.builders[library]

        def checked(configuration: Any, rank: int, world_size: int) -> Any:
            obstacles = list(self.obstacles(configuration, library))
            if obstacles:
                raise UnsupportedError("; ".join(obstacles))
            return build(configuration, rank, world_size)

        return checked

    def obstacles(self, configuration: Any, library: str) -> Iterator[str]:
        """Yield why ``library`` can't build this model."""
        if library not in self.builders:
            yield self._missing_builder(library)

    def _missing_builder(self, library: str) -> str:
        return f"model {self.name} is not supported with {library} (supported: {', '.join(self.builders) or 'none'})"


@dataclass(frozen=True)
class Model(BuiltByLibraries):
    """One network of images and how each library builds it; ``docs/plugins.md`` describes the fields."""

    name: str
    display_name: str
    image_size: int
    classes: int
    parameters: Mapping[int, int]
    parameters_source: str
    forward_macs: Callable[[int, int], int] | None
    flops_source: str
    builders: Mapping[str, Builder]
    classifiers: tuple[str, ...] = ("replicated",)
    smallest_image_size: int = 1
    settings: tuple[str, ...] = ()
    pools_to_pixel: bool = False

    def flops_per_sample(self, image_size: int, classes: int, sample_ratio: float = 1.0) -> float | None:
        """Return the FLOPs of one sample, or None."""
        # Partial FC computes ``sample_ratio`` of the classifier's columns, so only those count.
        if self.forward_macs is None:
            return None
        return float(TRAINING_FLOPS_PER_FORWARD_MAC * self.forward_macs(image_size, round(classes * sample_ratio)))

    def flops(self, configuration: Configuration) -> float | None:
        """Return the FLOPs of one sample of a configuration, or None."""
        return self.flops_per_sample(configuration.image_size, configuration.classes, configuration.sample_ratio)

    def obstacles(self, configuration: Configuration, library: str) -> Iterator[str]:
        """Yield why ``library`` can't build this model as configured."""
        classifier, ratio, size = configuration.classifier, configuration.sample_ratio, configuration.image_size
        yield from super().obstacles(configuration, library)
        if classifier not in self.classifiers:
            yield f"classifier is {classifier!r}, but model {self.name} supports {', '.join(self.classifiers)}"
        if not 0 < ratio <= 1:
            yield f"sample_ratio is {ratio!r}, but model {self.name} takes more than 0 and at most 1"
        if ratio < 1 and classifier != "sharded":
            yield f"sample_ratio is {ratio!r}, but model {self.name} samples classes only with classifier 'sharded'"
        if size < self.smallest_image_size:
            yield f"image_size is {size!r}, but model {self.name} needs {self.smallest_image_size} or more"
