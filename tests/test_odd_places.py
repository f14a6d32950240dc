"""Places where a command can't work, or whose names are no text: each is one message, or is no obstacle."""

import os
import shutil

import pytest

from dlperf_study.__main__ import main
from dlperf_study.core.paths import OUTPUTS_VARIABLE
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.study.plan import Plan
from tests.logs.ingest.conftest import folder, paths, small_archive, write_log

__all__ = ["folder", "paths", "small_archive", "write_log"]
#: A name in an encoding of before UTF-8.
NO_TEXT = os.fsdecode(b"caf\xe9")


@pytest.fixture
def gone(tmp_path, monkeypatch):
    """Go into a folder that is removed."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    yield
    os.chdir(tmp_path)


def require_one_error(errors: str, *parts: str) -> None:
    """Require that a command printed one line, an error with these parts."""
    [line] = errors.splitlines()
    assert line.startswith("error: ")
    assert [part for part in parts if part not in line] == []


@pytest.mark.usefixtures("gone")
@pytest.mark.parametrize("outputs", ["", "/tmp/outputs"])
def test_in_a_folder_that_is_gone_every_command_is_one_error(monkeypatch, capsys, outputs):
    monkeypatch.setenv(OUTPUTS_VARIABLE, outputs)
    for command in (["plan", "quickstart"], ["audit", "--published"], ["compare", "a", "b"]):
        assert main(command) == 1
        require_one_error(capsys.readouterr().err, "is gone")


def test_outputs_that_are_a_link_to_itself_are_one_error(tmp_path, monkeypatch, capsys):
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path / "loop"))
    assert main(["plan", "quickstart"]) == 1
    require_one_error(capsys.readouterr().err, OUTPUTS_VARIABLE, str(tmp_path / "loop"))


@pytest.mark.parametrize("command", ["ingest", "audit", "make-data"])
def test_so_is_a_link_to_itself_that_a_command_is_given(tmp_path, capsys, command):
    (tmp_path / "loop").symlink_to("loop")
    assert main([command, str(tmp_path / "loop")]) == 1
    require_one_error(capsys.readouterr().err, str(tmp_path / "loop"))


@pytest.mark.usefixtures("small_archive")
def test_logs_in_a_folder_whose_name_is_no_text_are_ingested_twice_alike(folder, paths, tmp_path, capsys):
    moved = tmp_path / NO_TEXT
    shutil.move(folder, moved)
    for _ in range(2):
        assert main(["ingest", str(moved), "--name", paths.folder.name, "--data-only", "--yes"]) == 0
    assert "Traceback" not in capsys.readouterr().err
    assert len(Dataset.load(paths).runs) == 9
    assert Plan.read(paths.plan_file).ingested_from == str(tmp_path / "caf\\xe9")


def test_names_that_git_ignores_may_have_any_encoding(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_bytes(b"caf\xe9\n")
    (tmp_path / "train.py").write_bytes(b"# caf\xe9\nimport torch\n")
    for _ in range(2):
        assert main(["init", "mine"]) == 0
    assert (tmp_path / ".gitignore").read_bytes() == b"caf\xe9\n/outputs/\n"


def test_a_study_file_in_another_encoding_is_not_replaced(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import torch\n")
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "mine.yaml").write_bytes(b"title: caf\xe9\n")
    assert main(["init", "mine"]) == 1
    assert "studies/mine.yaml" in capsys.readouterr().err
    assert (tmp_path / "studies" / "mine.yaml").read_bytes() == b"title: caf\xe9\n"
