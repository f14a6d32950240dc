"""A finished study stays finished until code changes that its runs import."""

import json
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from dlperf_study.core import code_identity
from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.execution.cache_key import EQUIVALENT_CODE, WITHOUT_PARTS, code_name, measuring_code
from dlperf_study.execution.pending import find_pending
from dlperf_study.execution.planning import load_cluster
from dlperf_study.execution.reuse import not_counted
from dlperf_study.study.plan import Plan
from dlperf_study.training import frameworks, models
from tests.execution.constructed import perform
from tests.golden_study.conftest import EVIDENCE
from tests.training.frameworks.launching import CLUSTER, configuration

#: The digest by which records name all benchmark code of commit 62553e5.
EARLIER = "35997727900597df6bbfc417215ab4fd05ca52d295fcf102ecda5b2217e36add"


def checkout(folder: Path, changes: dict[str, str]) -> Path:
    """Return a copy of the package in which these texts are appended to files, which may be new."""
    package = folder / "dlperf_study"
    for room in ("training", "programs", "machines", "records"):
        shutil.copytree(
            code_identity.PACKAGE_FOLDER / room, package / room, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name, text in changes.items():
        with (package / name).open("a") as file:
            file.write(text)
    return package


@pytest.mark.usefixtures("constructed_runs")
@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"training/models/resnet_of_mine.py": "MODEL = 1\n", "machines/launchers/ssh.py": "CHANGED = 1\n"}, 0),
        ({"training/data_loaders/_samples.py": "CHANGED = 1\n"}, 0),
        ({"training/worker/windows.py": "# A comment.\n", "machines/check/__init__.py": "CHANGED = 1\n"}, 0),
        ({"training/worker/windows.py": "CHANGED = 1\n"}, 9),
        ({"training/models/mobilenet_v2.py": "CHANGED = 1\n"}, 9),
        ({"machines/launchers/local.py": "CHANGED = 1\n"}, 9),
    ],
)
def test_a_finished_study_is_measured_again_if_what_it_imports_changed(plan, changes, missing, tmp_path, monkeypatch):
    cluster = load_cluster(plan.cluster)
    perform(find_pending(plan, cluster).executions, monkeypatch)
    assert find_pending(plan, cluster).executions == []
    monkeypatch.setattr(code_identity, "PACKAGE_FOLDER", checkout(tmp_path / "changed", changes))
    assert len(find_pending(plan, cluster).executions) == missing


#: The framework whose trainer is still the earlier one: what all others measured is measured again.
MEASURED_ALIKE = {"framework": "paddle_ps", "strategy": "local"}


def name_of_code(**changes: object) -> str:
    """Return the name of the code that measures a configuration."""
    return code_name(measuring_code(configuration(**MEASURED_ALIKE | changes), CLUSTER).roots)


@pytest.mark.parametrize("framework", frameworks.names())
@pytest.mark.parametrize("model", models.names())
def test_code_that_measures_as_an_earlier_version_has_its_name(framework, model):
    """If it does not, and the code that changed measures alike: ``python -m dlperf_study.execution.cache_key``."""
    has_earlier_name = name_of_code(framework=framework, model=model) == EARLIER
    assert has_earlier_name is (framework == MEASURED_ALIKE["framework"])


@pytest.mark.parametrize("launcher", ["local", "ssh", "slurm", "kubernetes"])
def test_a_launcher_measures_as_it_did(launcher):
    roots = measuring_code(configuration(**MEASURED_ALIKE), replace(CLUSTER, launcher=launcher)).roots
    assert code_name(roots) == json.loads(EQUIVALENT_CODE.read_text())["code"] == EARLIER


def test_code_that_measures_otherwise_than_an_earlier_version_has_another_name(tmp_path, monkeypatch):
    changes = {"training/models/vgg16.py": "CHANGED = 1\n"}
    monkeypatch.setattr(code_identity, "PACKAGE_FOLDER", checkout(tmp_path, changes))
    assert name_of_code(model="resnet50") == EARLIER
    assert name_of_code(model="vgg16") != EARLIER


def test_a_changed_size_of_a_transformer_is_measured_again(tmp_path, monkeypatch):
    package = checkout(tmp_path, {})
    file = package / "training/models/sizes.yaml"
    file.write_text(file.read_text().replace("hidden: 1536", "hidden: 1537", 1))
    monkeypatch.setattr(code_identity, "PACKAGE_FOLDER", package)
    assert name_of_code(model="gpt2") == EARLIER
    assert name_of_code(model="gpt_h1536_l16") != EARLIER


def test_runs_of_the_golden_study_do_not_count_because_their_records_have_no_parts(tmp_path, monkeypatch):
    with tarfile.open(EVIDENCE) as archive:
        archive.extractall(tmp_path, filter="data")
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    plan = Plan.read(StudyPaths.of("golden_study").plan_file)
    [sentence] = not_counted(plan, load_cluster(EVIDENCE.with_name("golden_cluster.yaml")), {})
    assert sentence.endswith(f" runs of this plan do not count: {WITHOUT_PARTS}")
