"""What a record says of the checkout that drove its run."""

import subprocess
from pathlib import Path

import pytest

from dlperf_study import __version__
from dlperf_study.machines.cluster import software
from dlperf_study.machines.cluster.software import git

IDENTITY = ("-c", "user.name=A Name", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in which one file is committed, and another kind of file is ignored."""
    monkeypatch.setattr(software, "CHECKOUT", tmp_path)
    (tmp_path / "study.yaml").write_text("title: committed\n")
    (tmp_path / ".gitignore").write_text("/outputs/\n")
    for words in (("init",), ("add", "."), (*IDENTITY, "commit", "-m", "a study")):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True, capture_output=True)
    return tmp_path


def test_outside_of_a_checkout_nothing_is_known(tmp_path, monkeypatch):
    monkeypatch.setattr(software, "CHECKOUT", tmp_path)
    assert git() == {}


def test_an_installed_package_knows_its_version_and_nothing_of_the_repository_it_is_in(checkout, monkeypatch):
    monkeypatch.setattr(software, "CHECKOUT", None)
    monkeypatch.chdir(checkout)
    assert git() == {"installed": __version__}


def test_before_the_first_commit_there_is_none(checkout):
    subprocess.run(["git", "-C", str(checkout), "checkout", "--orphan", "other"], check=True, capture_output=True)
    assert git() == {}


def test_what_is_committed_or_ignored_makes_nothing_uncommitted(checkout):
    (checkout / "outputs").mkdir()
    (checkout / "outputs" / "plan.json").touch()
    head = subprocess.run(["git", "-C", str(checkout), "rev-parse", "HEAD"], capture_output=True, text=True)
    assert git() == {"commit": head.stdout.strip(), "dirty": False}


@pytest.mark.parametrize("file", ["study.yaml", "my_study.yaml", "clusters/mine.yaml"])
def test_a_changed_file_and_a_new_one_are_uncommitted(checkout, file):
    (checkout / file).parent.mkdir(exist_ok=True)
    (checkout / file).write_text("title: mine\n")
    assert git()["dirty"] is True
