"""What makes a finished run worth measuring again."""

import json
import platform
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest

from dlperf_study.execution import cache_key as cache_key_module
from dlperf_study.execution import libraries
from dlperf_study.execution.cache_key import cache_key, cache_key_parts
from dlperf_study.machines.cluster import DEFAULT, Cluster
from dlperf_study.study.configuration import Configuration
from tests.shell_program import program
from tests.training.frameworks.launching import CLUSTER, configuration

ASKED = configuration()


def digest(asked: Configuration, cluster: Cluster = CLUSTER) -> str:
    return cache_key(asked, cache_key_parts(asked, cluster))


@pytest.mark.parametrize(
    ("asked", "cluster", "same"),
    [
        (replace(ASKED, repetitions=9, timeout_seconds=9), CLUSTER, True),
        (ASKED, replace(CLUSTER, idle_wait_seconds=9.0, interconnect="another"), True),
        (replace(ASKED, measured_steps=9), CLUSTER, False),
        (replace(ASKED, seed=9), CLUSTER, False),
        (ASKED, replace(CLUSTER, device="gpu"), False),
    ],
)
def test_what_numbers_depend_on(asked, cluster, same):
    assert (digest(asked, cluster) == digest(ASKED)) is same


def test_numbers_depend_on_the_library_and_the_version_of_python_but_not_on_the_place_of_python(tmp_path):
    older = digest(ASKED, with_library(tmp_path, "3.0.0"))
    assert digest(ASKED, with_library(tmp_path, "3.0.1")) != older
    assert digest(ASKED, with_library(tmp_path, "3.0.0", python="3.12.1")) != older
    assert digest(ASKED, with_library(tmp_path, "3.0.0", implementation="PyPy")) != older
    (tmp_path / "moved").mkdir()
    assert digest(ASKED, with_library(tmp_path / "moved", "3.0.0")) == older


def test_numbers_depend_on_what_reads_the_images(monkeypatch):
    asked, versions = replace(ASKED, data_loader="files"), {"pillow": "12.0.0"}
    monkeypatch.setattr(libraries, "data_loader_versions", lambda *_: dict(versions))
    older = digest(asked)
    assert digest(asked) == older
    versions["pillow"] = "12.0.1"
    assert digest(asked) != older


def test_numbers_depend_on_the_folder_of_the_images():
    """The same name may be another set on another cluster file: fewer, larger or slower images."""
    with_images = replace(ASKED, data_loader="files", image_dataset="photographs")
    one, other = (replace(CLUSTER, image_datasets={"photographs": folder}) for folder in ("/fast", "/slow"))
    assert digest(with_images, one) == digest(with_images, replace(one, interconnect="another"))
    assert digest(with_images, one) != digest(with_images, other)
    assert digest(ASKED, one) == digest(ASKED, other)


def test_numbers_depend_on_the_container_image():
    images = {"default": "registry/all:1", "torch_ddp": "registry/torch:1"}
    cluster = replace(CLUSTER, launcher="kubernetes", settings=SimpleNamespace(images=images))
    assert cache_key_parts(ASKED, cluster)["container"] == "registry/all:1"
    assert cache_key_parts(replace(ASKED, framework="torch_ddp"), cluster)["container"] == "registry/torch:1"
    assert "container" not in cache_key_parts(ASKED, CLUSTER)


def test_a_project_folder_with_images_may_be_renamed(tmp_path, monkeypatch):
    asked, digests = replace(ASKED, data_loader="files", image_dataset="photographs"), set()
    for name in ("project", "renamed"):
        monkeypatch.setattr(cache_key_module.resources, "workspace", lambda name=name: tmp_path / name)
        images = str(tmp_path / name / "data" / "photographs")
        digests.add(digest(asked, replace(CLUSTER, image_datasets={"photographs": images})))
    assert len(digests) == 1


def test_a_program_depends_on_its_python_also_without_this_package_and_on_what_that_has_installed(tmp_path):
    trained = replace(ASKED, framework="", model="", own_program="trained", program_hash="d")
    answer = {"python": "CPython 3.9.2", "packages": {"torch": "2.13.0"}}
    parts = cache_key_parts(trained, with_answer(tmp_path, answer))
    assert (parts["python"], parts["packages"]) == ("CPython 3.9.2", {"torch": "2.13.0"})
    here = cache_key_parts(trained, replace(CLUSTER, python={DEFAULT: sys.executable}))
    assert here["python"] == f"{platform.python_implementation()} {platform.python_version()}"
    assert here["packages"]["numpy"] == version("numpy")
    # One that does not run is told apart by its path.
    broken = program(tmp_path, "exit 1", "broken")
    parts = cache_key_parts(trained, replace(CLUSTER, python={DEFAULT: broken}))
    assert (parts["python"], parts["packages"]) == (broken, {})


def with_answer(folder: Path, answer: dict[str, object]) -> Cluster:
    return replace(CLUSTER, python={DEFAULT: program(folder, f"echo '{json.dumps(answer)}'")})


def with_library(folder: Path, version: str, python: str = "3.11.7", implementation: str = "CPython") -> Cluster:
    """Return a cluster whose Python prints that it has this version of the framework's library."""
    libraries._installed_versions.cache_clear()
    versions = {"implementation": implementation, "python": python, "paddlepaddle": version}
    return with_answer(folder, {"code": "", "software": versions})
