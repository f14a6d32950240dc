"""How an image becomes a training sample: random resized crop, flip, normalisation. The same code for every library.

Crop and flip are those that are usual for ImageNet, and are used for CIFAR-10 too.
"""

import math
from functools import cache
from typing import Any

#: The part of the image's area that a crop has, and its ratio of width to height.
AREA, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
#: How many random crops are tried before the largest one in the centre is taken.
TRIES = 10
#: Mean and standard deviation of ImageNet's colours, relative to the largest value of a pixel.
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
LARGEST_VALUE = 255

Box = tuple[float, float, float, float]


def augmented(image: Any, size: int, generator: Any) -> Any:
    """Return a random crop of a Pillow image, scaled and perhaps mirrored: 8-bit pixels [size, size, 3]."""
    import numpy as np
    from PIL.Image import Resampling

    box, is_mirrored = random_draws(image.width, image.height, generator)
    pixels = np.asarray(image.resize((size, size), Resampling.BILINEAR, box))
    return pixels[:, ::-1] if is_mirrored else pixels


def normalise(pixels: Any, out: Any) -> None:
    """Write 8-bit pixels [S, S, 3], normalised, to ``out``, float32 [3, S, S]."""
    import numpy as np

    for channel, (scale, offset) in enumerate(normalisation()):
        np.multiply(pixels[..., channel], scale, out=out[channel], casting="unsafe")
        out[channel] += offset


def random_draws(width: int, height: int, generator: Any) -> tuple[Box, bool]:
    """Return the part of an image that is cut out, and whether it is mirrored."""
    return random_box(width, height, generator), bool(generator.random() < 0.5)


def random_box(width: int, height: int, generator: Any) -> Box:
    """Return left, top, right and bottom, in pixels, of a random part of an image."""
    for _ in range(TRIES):
        area = width * height * generator.uniform(*AREA)
        ratio = math.exp(generator.uniform(math.log(RATIO[0]), math.log(RATIO[1])))
        part_width, part_height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < part_width <= width and 0 < part_height <= height:
            left = int(generator.integers(0, width - part_width + 1))
            top = int(generator.integers(0, height - part_height + 1))
            return left, top, left + part_width, top + part_height
    return _central_box(width, height)


def _central_box(width: int, height: int) -> Box:
    """Return the largest part in the centre whose ratio of width to height is allowed."""
    part_width, part_height = min(width, round(height * RATIO[1])), min(height, round(width / RATIO[0]))
    left, top = (width - part_width) // 2, (height - part_height) // 2
    return left, top, left + part_width, top + part_height


@cache
def normalisation() -> list[tuple[Any, Any]]:
    """Return (scale, offset), float32, of each channel, by which values from 0 to 255 become normalised ones."""
    import numpy as np

    pairs = zip(MEAN, DEVIATION, strict=True)
    return [(np.float32(1 / (LARGEST_VALUE * deviation)), np.float32(-mean / deviation)) for mean, deviation in pairs]
