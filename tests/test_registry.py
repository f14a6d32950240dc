"""Folders as registries."""

import sys
from pathlib import Path
from typing import Any

import pytest

from dlperf_study import frameworks, launchers, models
from dlperf_study.analysis.audit import checks
from dlperf_study.logs import formats
from dlperf_study.registry import closest, names, unknown


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


def test_parts_are_the_modules_without_an_underscore_and_none_is_imported(package: str) -> None:
    assert names(package) == ("first", "second")
    assert f"{package}.first" not in sys.modules


def test_an_unknown_name_is_answered_with_the_likeliest_and_all() -> None:
    assert unknown("a.yaml: tree is", "burch", "trees", ("birch", "oak")) == (
        "a.yaml: tree is 'burch'; did you mean birch? the trees are birch, oak"
    )
    assert unknown("tree is", "x", "trees", iter(("birch", "oak"))) == "tree is 'x'; the trees are birch, oak"
    assert closest("oka", ()) == ""


@pytest.mark.parametrize("registry", [frameworks, launchers, models, formats, checks], ids=lambda one: one.__name__)
def test_every_part_of_every_registry_can_be_loaded(registry: Any) -> None:
    assert registry.names()
    for name in registry.names():
        part = registry.load(name)
        assert getattr(part, "name", name) == name


def test_launchers_are_these() -> None:
    assert launchers.names() == ("kubernetes", "local", "slurm", "ssh")
