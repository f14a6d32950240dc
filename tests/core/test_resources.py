"""Where studies, clusters and outputs are: of a checkout, and of a user who has installed the package."""

import pytest

from dlperf_study.core import resources, user_commands
from dlperf_study.core.errors import MissingPackageError
from dlperf_study.core.paths import OUTPUTS_VARIABLE, PROJECT, image_datasets_folder, outputs_folder
from dlperf_study.core.resources import NOTEBOOKS, PARAMS, workspace
from dlperf_study.core.user_commands import install_command, require_module
from dlperf_study.study.strict_yaml import find_file
from dlperf_study.study.study_file import load_study

STUDY = (PARAMS / "studies" / "quickstart.yaml").read_text(encoding="utf-8")


@pytest.fixture
def installed(monkeypatch):
    """This package, as if it were installed."""
    monkeypatch.setattr(resources, "CHECKOUT", None)
    monkeypatch.setattr(user_commands, "CHECKOUT", None)
    monkeypatch.delenv(OUTPUTS_VARIABLE, raising=False)


@pytest.fixture
def below(tmp_path, monkeypatch):
    """A folder in a folder, which is the current one."""
    folder = tmp_path / "repository" / "src"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("folder", [PROJECT, NOTEBOOKS])
def test_a_checkout_is_its_own_workspace(folder, monkeypatch):
    monkeypatch.delenv(OUTPUTS_VARIABLE, raising=False)
    monkeypatch.chdir(folder)
    assert (workspace(), outputs_folder(), image_datasets_folder()) == (PROJECT, PROJECT / "outputs", PROJECT / "data")


@pytest.mark.usefixtures("below")
def test_from_elsewhere_a_checkout_is_used_where_no_folder_is_marked():
    assert workspace() == PROJECT


@pytest.mark.parametrize("mark", ["studies", ".dlperf_study"])
def test_the_nearest_marked_folder_upwards_is_the_workspace(below, mark, monkeypatch):
    (below.parents[1] / "studies").mkdir()
    (below.parent / mark).mkdir()
    monkeypatch.delenv(OUTPUTS_VARIABLE, raising=False)
    assert (workspace(), outputs_folder()) == (below.parent, below.parent / "outputs")


@pytest.mark.usefixtures("installed")
def test_without_a_mark_and_a_checkout_it_is_the_current_folder(below):
    assert workspace() == below


@pytest.mark.usefixtures("installed")
def test_studies_of_the_user_are_found_before_those_of_the_package(below):
    (below / "mine.yaml").write_text(STUDY)
    assert find_file("study", "mine") == below / "mine.yaml"
    (below / "studies").mkdir()
    (below / "studies" / "mine.yaml").write_text(STUDY)
    assert find_file("study", "mine") == below / "studies" / "mine.yaml"
    assert find_file("study", "quickstart") == PARAMS / "studies" / "quickstart.yaml"
    assert load_study("mine").source == "studies/mine.yaml"


def test_a_file_of_the_current_folder_is_no_cluster(below):
    (below / "local.yaml").write_text("anything: else\n")
    assert find_file("cluster", "local") == PARAMS / "clusters" / "local.yaml"


@pytest.mark.parametrize(
    ("extra", "in_checkout"),
    [("kubernetes", "pip install -c locks/main.txt -e '.[kubernetes]'"), ("torch", "make torch")],
)
def test_an_extra_is_installed_by_make_in_a_checkout_and_by_pip_elsewhere(extra, in_checkout, request):
    assert install_command(extra) == in_checkout
    request.getfixturevalue("installed")
    assert install_command(extra) == f"pip install 'dlperf_study[{extra}]'"


def test_a_missing_module_is_an_error_with_the_command(monkeypatch):
    monkeypatch.setattr(user_commands, "find_spec", lambda module: None)
    with pytest.raises(MissingPackageError, match=r"-c locks/main\.txt"):
        require_module("kubernetes")
