from dataclasses import replace

import pytest

from dlperf_study import models
from dlperf_study.errors import UnsupportedError
from dlperf_study.study.configuration import Configuration

CONFIGURATION = Configuration(study="s", cluster="c", framework="f", strategy="d", model="resnet50", image_size=32)


def test_training_costs_six_flops_for_a_forward_multiply_accumulate():
    resnet50 = models.load("resnet50")
    assert resnet50.flops_per_sample(224, 1000) == 6 * 4_089_184_256


def test_flops_are_unknown_without_a_count():
    assert replace(models.load("resnet50"), forward_macs=None).flops_per_sample(224, 1000) is None


def test_sampled_classes_cost_only_their_share():
    arcface = models.load("arcface_resnet50")
    saved = arcface.flops_per_sample(112, 1000) - arcface.flops_per_sample(112, 1000, sample_ratio=0.1)
    assert saved == 6 * 512 * 900


def test_a_library_without_builder_is_unsupported():
    with pytest.raises(UnsupportedError, match="resnet50 has no builder for 'mxnet'; its libraries: paddle, torch"):
        models.load("resnet50").builder("mxnet")


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        ("resnet50", {"classifier": "sharded"}, "classifier is 'sharded', but model resnet50 has replicated"),
        ("arcface_resnet50", {"classifier": "local"}, "has replicated, sharded"),
        ("arcface_resnet50", {"sample_ratio": 0.5}, "sample_ratio is 0.5.*only with classifier 'sharded'"),
        ("arcface_resnet50", {"sample_ratio": 0.0, "classifier": "sharded"}, "more than 0 and at most 1"),
        ("vgg16_cifar", {"image_size": 31}, "image_size is 31, but model vgg16_cifar needs 32 or more"),
    ],
)
def test_what_a_model_cannot_do_is_refused_before_anything_is_built(model, change, message):
    with pytest.raises(UnsupportedError, match=message):
        models.load(model).builder("paddle")(replace(CONFIGURATION, **change), 0, 1)
