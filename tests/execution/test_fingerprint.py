"""What makes a finished run worth measuring again."""

from dataclasses import replace
from pathlib import Path

import pytest

from dlperf_study.execution import fingerprint as fingerprint_module
from dlperf_study.execution.fingerprint import fingerprint
from dlperf_study.execution.libraries import _installed_versions
from dlperf_study.machines.cluster import DEFAULT, Cluster
from tests.frameworks.launching import CLUSTER, configuration
from tests.shell_program import program

ASKED = configuration()


@pytest.mark.parametrize(
    ("asked", "cluster", "same"),
    [
        (replace(ASKED, repeats=9, timeout_seconds=9), CLUSTER, True),
        (ASKED, replace(CLUSTER, idle_wait_seconds=9.0, link="another"), True),
        (replace(ASKED, measured_steps=9), CLUSTER, False),
        (replace(ASKED, seed=9), CLUSTER, False),
        (ASKED, replace(CLUSTER, device="gpu"), False),
    ],
)
def test_what_numbers_depend_on(asked, cluster, same):
    assert (fingerprint(asked, cluster) == fingerprint(ASKED, CLUSTER)) is same


def test_numbers_depend_on_the_library_and_on_its_python(tmp_path):
    older = fingerprint(ASKED, with_library(tmp_path, "3.0.0"))
    newer = fingerprint(ASKED, with_library(tmp_path, "3.0.1"))
    assert newer != older
    (tmp_path / "moved").mkdir()
    assert fingerprint(ASKED, with_library(tmp_path / "moved", "3.0.1")) != newer
    assert fingerprint(ASKED, with_library(tmp_path, "3.0.0")) == older


def test_numbers_depend_on_what_reads_the_images(monkeypatch):
    asked, versions = replace(ASKED, data_source="files"), {"pillow": "12.0.0"}
    monkeypatch.setattr(fingerprint_module, "data_source_versions", lambda *_: dict(versions))
    older = fingerprint(asked, CLUSTER)
    assert fingerprint(asked, CLUSTER) == older
    versions["pillow"] = "12.0.1"
    assert fingerprint(asked, CLUSTER) != older


def test_numbers_depend_on_the_folder_of_the_images():
    """The same name may be another set on another cluster file: fewer, larger or slower images."""
    asked = replace(ASKED, data_source="files", image_set="photographs")
    one, other = (replace(CLUSTER, image_sets={"photographs": folder}) for folder in ("/fast", "/slow"))
    assert fingerprint(asked, one) == fingerprint(asked, replace(one, link="another"))
    assert fingerprint(asked, one) != fingerprint(asked, other)
    assert fingerprint(ASKED, one) == fingerprint(ASKED, other)


def with_library(folder: Path, version: str) -> Cluster:
    """Return a cluster whose Python says that it has this version of the framework's library."""
    _installed_versions.cache_clear()
    python = program(folder, f'echo \'{{"code": "", "software": {{"paddlepaddle": "{version}"}}}}\'')
    return replace(CLUSTER, python={DEFAULT: python})
