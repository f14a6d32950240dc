"""Which files belong to a program, and that every run gets those of the study's start."""

import os
import random
import subprocess
import tarfile
from pathlib import Path

import pytest

from dlperf_study.core.errors import StudyFileError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.machines.launchers import load
from dlperf_study.programs import program_files
from dlperf_study.programs.program_files import (
    file_not_copied,
    identified,
    keep,
    kept_program,
    module_not_there,
    require_packed_size,
)
from dlperf_study.study.program import Program


@pytest.fixture
def repository(tmp_path):
    """A repository with a tracked, an untracked and an ignored file, and a study."""
    folder = tmp_path / "repository"
    for name, content in (
        ("train.py", "print(1)"),
        ("sub/model.py", "x = 1"),
        (".gitignore", "*.bin\n"),
        ("studies/train.yaml", "title: x"),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "x")
    (folder / "new.py").write_text("y = 2")
    (folder / "data.bin").write_bytes(b"0" * 1000)
    return folder


def git(folder, *arguments):
    subprocess.run(("git", "-C", str(folder), *arguments), check=True, capture_output=True)


def program_in(folder: Path) -> Program:
    return Program("p", str(folder), "python train.py", study_folder=str(folder / "studies"))


def names(archive: Path) -> set[str]:
    with tarfile.open(archive) as tar:
        return set(tar.getnames())


def test_tracked_and_new_files_are_kept_and_neither_ignored_ones_nor_studies(repository, tmp_path):
    paths = StudyPaths(tmp_path / "study")
    program = identified(program_in(repository), "x.yaml")
    archive = keep(program, paths)
    assert names(archive) == {"train.py", "sub/model.py", ".gitignore", "new.py"}
    assert kept_program(paths, program.digest) == (program, archive)


@pytest.mark.parametrize(
    ("reason", "missed"),
    [
        ("No such file or directory: 'data.bin'", True),
        ("No such file or directory: '/x/runs/1/scratch/program/data.bin'", True),
        ("No such file or directory: 'train.py'", False),
        ("No such file or directory: 'other.bin'", False),
        ("'list' object is not callable", False),
        ("KeyError: 'sub'", False),
    ],
)
def test_a_file_that_git_ignores_is_named_where_a_run_missed_it(repository, reason, missed):
    assert file_not_copied(program_in(repository), reason).startswith("data.bin") is missed
    assert bool(file_not_copied(program_in(repository), reason)) is missed


@pytest.mark.parametrize("name", [".env", ".env.local", "sub/.netrc", "id_ed25519", "server.pem"])
def test_a_file_in_which_people_keep_keys_is_copied_only_if_git_tracks_it(repository, name):
    (repository / name).write_text("TOKEN=x")
    (repository / ".env.example").write_text("TOKEN=")
    program = program_in(repository)
    assert repository / name not in program_files.program_files(program, "x.yaml")
    assert repository / ".env.example" in program_files.program_files(program, "x.yaml")
    assert file_not_copied(program, f"No such file or directory: '{name}'").startswith(f"{name} is in")
    git(repository, "add", name)
    assert repository / name in program_files.program_files(program, "x.yaml")


@pytest.mark.parametrize(
    ("command", "reason", "is_named"),
    [
        ("{python} train.py", "(ModuleNotFoundError: No module named 'paddle')", True),
        ("{python} train.py", "exited with code 1", False),
        ("torchrun train.py", "No module named 'paddle'", False),
    ],
)
def test_the_python_that_had_not_a_module_is_named(command, reason, is_named):
    remedy = module_not_there(Program("p", "/a", command), "/x/python3", reason)
    assert ("/x/python3" in remedy) is ("paddle" in remedy) is is_named


def test_a_folder_without_git_has_all_files_but_those_that_python_compiles_or_people_keep_keys_in(tmp_path):
    for name in ("train.py", "__pycache__/train.pyc", "config/x.json", ".env"):
        (tmp_path / "p" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "p" / name).touch()
    program = identified(Program("p", str(tmp_path / "p"), "x"), "x.yaml")
    assert names(keep(program, StudyPaths(tmp_path / "study"))) == {"train.py", "config/x.json"}
    assert (program.commit, program.dirty, program.remote) == ("", False, "")


@pytest.mark.parametrize("change", ["content", "mode", "name", "link"])
def test_an_edit_is_another_program(repository, change):
    before = identified(program_in(repository), "x.yaml")
    script = repository / "train.py"
    if change == "content":
        script.write_text("print(2)")
    elif change == "mode":
        script.chmod(0o755)
    elif change == "name":
        script.rename(repository / "other.py")
    else:
        os.symlink("train.py", repository / "link.py")
    assert identified(program_in(repository), "x.yaml").digest != before.digest


def test_an_edit_of_the_study_or_of_what_git_ignores_is_none(repository):
    before = identified(program_in(repository), "x.yaml")
    (repository / "studies/train.yaml").write_text("title: y")
    (repository / "data.bin").write_bytes(b"1")
    assert identified(program_in(repository), "x.yaml").digest == before.digest


def test_commit_changes_and_remote_without_its_password(repository):
    git(repository, "remote", "add", "origin", "https://user:word@example.org/x.git")
    program = identified(program_in(repository), "x.yaml")
    assert (len(program.commit), program.dirty, program.remote) == (40, False, "https://example.org/x.git")
    (repository / "train.py").write_text("print(2)")
    assert identified(program_in(repository), "x.yaml").dirty


def test_a_file_that_changes_while_it_is_copied_keeps_nothing(repository, tmp_path):
    paths, program = StudyPaths(tmp_path / "study"), identified(program_in(repository), "x.yaml")
    (repository / "train.py").write_text("print(2)")
    with pytest.raises(StudyFileError, match=r"train\.py last"):
        keep(program, paths)
    with pytest.raises(StudyFileError):
        kept_program(paths, program.digest)


def test_too_much_to_copy_is_refused_with_the_largest_files(repository, monkeypatch):
    monkeypatch.setattr(program_files, "MOST_BYTES", 10)
    with pytest.raises(StudyFileError, match=r"train\.py"):
        identified(program_in(repository), "x.yaml")


def test_more_than_a_secret_of_kubernetes_holds_is_refused(repository, refused):
    launcher = load("kubernetes")
    limits = launcher.most_archive_bytes, launcher.archive_remedy
    require_packed_size(program_in(repository), "x.yaml", *limits)
    (repository / "weights.pt").write_bytes(random.Random(1).randbytes(limits[0]))
    with refused(StudyFileError):
        require_packed_size(program_in(repository), "x.yaml", *limits)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(StudyFileError, match="nowhere"):
        identified(Program("p", str(tmp_path / "nowhere"), "x"), "x.yaml")


def test_a_folder_of_which_git_ignores_all_is_refused_before_anything_is_measured(repository, refused):
    ignored = repository / "mine"
    ignored.mkdir()
    (ignored / "train.py").write_text("print(1)")
    (repository / ".gitignore").write_text("mine/\n")
    with refused(StudyFileError):
        identified(program_in(ignored), "x.yaml")
    (ignored / "train.py").unlink()
    (ignored / ".env").write_text("KEY=1")
    assert identified(program_in(ignored), "x.yaml").digest
