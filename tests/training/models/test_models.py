"""What holds for every model as it is declared, before any library builds it."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from dlperf_study.core.errors import UnsupportedError
from dlperf_study.core.part_search import SIZES, read_sizes
from dlperf_study.study.configuration import Configuration
from dlperf_study.training import models
from dlperf_study.training.models._sequences import SequenceModel
from tests.training.models.networks import LIBRARIES

CONFIGURATION = Configuration(study="s", cluster="c", framework="f", strategy="d", model="resnet50", image_size=32)


def test_every_file_that_is_not_a_helper_and_every_size_is_a_model():
    folder = Path(models.__file__).parent
    files = [file.stem for file in folder.glob("*.py") if not file.stem.startswith("_")]
    assert models.names() == tuple(sorted([*files, *read_sizes(folder)]))
    assert {"resnet50", "gpt2"} <= {*models.names()}


def test_the_file_of_sizes_is_yaml():
    folder = Path(models.__file__).parent
    assert read_sizes(folder) == yaml.safe_load((folder / SIZES).read_text())


@pytest.mark.parametrize("name", models.names())
def test_a_model_has_the_name_of_its_file_and_names_its_sources(name):
    model = models.load(name)
    assert model.name == name
    assert isinstance(model, SequenceModel) or model.classes in model.parameters
    assert model.parameters_source
    assert model.flops_source
    assert {*model.builders} <= {*LIBRARIES, "tensorflow"}
    assert model.builders


def test_loading_every_model_imports_no_framework():
    program = (
        "import sys; from dlperf_study.training import models; [models.load(n) for n in models.names()];"
        "print({'paddle', 'tensorflow', 'torch', 'numpy'} & set(sys.modules))"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (finished.stdout, finished.stderr) == ("set()\n", "")


def test_flops_are_six_for_a_multiply_accumulate_and_unknown_without_a_count():
    resnet50 = models.load("resnet50")
    assert resnet50.flops_per_sample(224, 1000) == 6 * 4_089_184_256
    assert replace(models.load("resnet50"), forward_macs=None).flops_per_sample(224, 1000) is None
    arcface = models.load("arcface_resnet50")
    saved = arcface.flops_per_sample(112, 1000) - arcface.flops_per_sample(112, 1000, sample_ratio=0.1)
    assert saved == 6 * 512 * 900


TOKENS = {"image_size": 224, "sequence_length": 128}
REFUSED = (
    ("paddle", "resnet50", {"classifier": "sharded"}),
    ("paddle", "arcface_resnet50", {"classifier": "local"}),
    ("paddle", "arcface_resnet50", {"sample_ratio": 0.5}),
    ("paddle", "arcface_resnet50", {"sample_ratio": 0.0, "classifier": "sharded"}),
    ("paddle", "vgg16_cifar", {"image_size": 31}),
    ("torch", "gpt_tiny", {"image_size": 224}),
    ("torch", "gpt_tiny", TOKENS | {"sequence_length": 1025}),
    ("torch", "gpt_tiny", TOKENS | {"classes": 10, "image_dataset": "photographs"}),
    ("torch", "bert_tiny", TOKENS),
    ("torch", "bert_tiny", TOKENS | {"masked_positions": 129}),
    ("torch", "llama_tiny", TOKENS | {"image_size": 32, "memory_format": "nhwc"}),
)


def test_what_a_model_cannot_do_is_refused_before_anything_is_built(snapshot):
    with pytest.raises(UnsupportedError) as caught:
        models.load("resnet50").builder("mxnet")
    reasons = [str(caught.value)]
    for library, model, changes in REFUSED:
        with pytest.raises(UnsupportedError) as caught:
            models.load(model).builder(library)(replace(CONFIGURATION, **changes), 0, 1)
        reasons.append(str(caught.value))
    assert reasons == snapshot
