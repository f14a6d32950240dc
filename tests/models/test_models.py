"""The folder is the registry."""

import subprocess
import sys
from pathlib import Path

import pytest

from dlperf_study import models
from dlperf_study.errors import StudyFileError
from tests.models.networks import LIBRARIES


def test_every_file_that_is_not_a_helper_is_a_model():
    files = [file.stem for file in Path(models.__file__).parent.glob("*.py")]
    assert models.names() == tuple(sorted(name for name in files if not name.startswith("_")))
    assert "resnet50" in models.names()


@pytest.mark.parametrize("name", models.names())
def test_a_model_has_the_name_of_its_file_and_names_its_sources(name):
    model = models.load(name)
    assert model.name == name
    assert model.classes in model.parameters
    assert model.parameters_source
    assert model.flops_source
    assert {*model.builders} <= {*LIBRARIES, "tensorflow"}
    assert model.builders


@pytest.mark.parametrize("name", ["vgg61", "base", "_counting"])
def test_an_unknown_name_is_refused_with_the_choices(name):
    with pytest.raises(StudyFileError, match=rf"'{name}'.*mobilenet_v2, .*resnet50"):
        models.load(name)


def test_loading_every_model_imports_no_framework():
    program = (
        "import sys; from dlperf_study import models; [models.load(n) for n in models.names()];"
        "print({'paddle', 'tensorflow', 'torch', 'numpy'} & set(sys.modules))"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (finished.stdout, finished.stderr) == ("set()\n", "")
