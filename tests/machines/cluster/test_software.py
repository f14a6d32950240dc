"""What a Python says that it brings."""

import pytest

from dlperf_study.machines.cluster.software import library_versions
from dlperf_study.training import frameworks
from dlperf_study.training.questions import packages_of_libraries


@pytest.mark.parametrize(
    ("versions", "libraries"),
    [
        ({"paddlepaddle": "3.0.0", "torch": "2.13.0+cpu", "numpy": "2.4"}, {"paddle": "3.0.0", "torch": "2.13.0"}),
        ({"paddlepaddle-gpu": "3.0.0", "horovod": "0.28.1"}, {"paddle": "3.0.0", "horovod": "0.28.1"}),
        ({"paddlepaddle-gpu": "2.6.2", "paddlepaddle": "3.0.0"}, {"paddle": "2.6.2"}),
        ({"numpy": "2.4"}, {}),
    ],
)
def test_a_library_has_the_version_of_the_package_that_brings_it(versions, libraries):
    assert library_versions(packages_of_libraries(), versions) == libraries


@pytest.mark.parametrize("name", frameworks.names())
def test_the_packages_of_a_framework_are_those_of_a_library(name):
    framework = frameworks.load(name)
    assert packages_of_libraries()[framework.library] == framework.packages
