"""Which part of an image becomes a sample, and how it is scaled, mirrored and normalised."""

import numpy as np
import pytest
from PIL import Image

from dlperf_study.training.data_loaders._samples import AREA, RATIO, augmented, normalise, random_box


@pytest.mark.parametrize(("width", "height"), [(400, 350), (32, 32), (500, 40), (40, 500), (1, 1)])
def test_a_part_is_inside_its_image(width, height):
    generator = np.random.default_rng(0)
    for _ in range(300):
        left, top, right, bottom = random_box(width, height, generator)
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height


def test_parts_have_the_areas_and_the_ratios_that_are_drawn():
    generator = np.random.default_rng(0)
    boxes = np.array([random_box(1000, 1000, generator) for _ in range(2000)])
    widths, heights = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    areas, ratios = widths * heights / 1e6, widths / heights
    assert areas.min() == pytest.approx(AREA[0], abs=0.01)
    assert 0.9 < areas.max() <= AREA[1]
    assert ratios.min() == pytest.approx(RATIO[0], abs=0.01)
    assert ratios.max() == pytest.approx(RATIO[1], abs=0.01)
    assert (boxes[:, 0] / (1000 - widths + 1)).mean() == pytest.approx(0.5, abs=0.02)


def test_an_image_on_which_no_part_fits_gives_its_centre():
    generator = np.random.default_rng(0)
    assert random_box(1000, 10, generator) == (493, 0, 506, 10)
    assert random_box(10, 1000, generator) == (0, 493, 10, 506)


def test_a_sample_is_its_part_scaled_perhaps_mirrored_and_normalised():
    pixels = np.random.default_rng(1).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    image, mirrored = Image.fromarray(pixels), 0
    for seed in range(40):
        sample = np.empty((3, 16, 16), np.float32)
        normalise(augmented(image, 16, np.random.default_rng(seed)), sample)
        box = random_box(40, 30, np.random.default_rng(seed))
        scaled = np.asarray(image.resize((16, 16), Image.Resampling.BILINEAR, box), dtype=np.float64) / 255
        expected = ((scaled - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)).transpose(2, 0, 1)
        is_mirrored = not np.allclose(sample, expected, atol=1e-5)
        assert np.allclose(sample[..., ::-1] if is_mirrored else sample, expected, atol=1e-5)
        mirrored += is_mirrored
    assert 10 <= mirrored <= 30
