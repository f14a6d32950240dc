"""Folders as registries."""

import sys
from pathlib import Path

import pytest

from dlperf_study.audit import checks
from dlperf_study.core.errors import DlperfStudyError, LogError, StudyFileError, TableError
from dlperf_study.core.registry import Registry
from dlperf_study.logs import formats
from dlperf_study.machines import launchers
from dlperf_study.training import data_loaders, frameworks, models


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a package whose modules can't be imported."""
    folder = tmp_path / "parts_of_a_test"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name in ("second", "first", "_shared"):
        (folder / f"{name}.py").write_text("raise AssertionError\n")
    monkeypatch.syspath_prepend(tmp_path)
    return folder.name


def test_parts_are_the_modules_without_an_underscore_and_none_is_imported(package):
    assert Registry[object](package, "PART", "part", DlperfStudyError).names() == ("first", "second")
    assert f"{package}.first" not in sys.modules


@pytest.mark.parametrize(
    ("registry", "error", "said"),
    [
        (frameworks, StudyFileError, "framework is '_base'; the frameworks are horovod_tensorflow, "),
        (launchers, StudyFileError, "launcher is '_base'; the launchers are kubernetes, "),
        (models, StudyFileError, "model is '_base'; did you mean bert_base?"),
        (data_loaders, StudyFileError, "data loader is '_base'; the data loaders are "),
        (formats, LogError, "format is '_base'; the formats are composer, "),
        (checks, TableError, "check is '_base'; the checks are above_linear, "),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_an_unknown_name_is_answered_with_the_choices(registry, error, said):
    with pytest.raises(error) as caught:
        registry.load("_base")
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    "registry", [frameworks, launchers, models, data_loaders, formats, checks], ids=lambda one: one.__name__
)
def test_every_part_of_every_registry_can_be_loaded(registry):
    assert registry.names()
    for name in registry.names():
        part = registry.load(name)
        assert getattr(part, "name", name) == name
