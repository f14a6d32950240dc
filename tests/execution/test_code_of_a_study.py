"""A finished study stays finished until code changes that its runs import."""

import hashlib
import json
import shutil
import tarfile
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from dlperf_study.core import code_identity
from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.execution import fingerprint as fingerprint_module
from dlperf_study.execution.fingerprint import EQUIVALENT_CODE, code_name, fingerprint, measuring_code
from dlperf_study.execution.pending import pending_of
from dlperf_study.execution.planning import load_cluster
from dlperf_study.execution.repetitions import requested_runs, states_of
from dlperf_study.machines.cluster import DEFAULT, Cluster
from dlperf_study.programs import data_sources, frameworks, models
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.plan import Plan
from tests.execution.constructed import perform
from tests.frameworks.launching import CLUSTER, configuration
from tests.golden_study.conftest import EVIDENCE

#: The digest by which records name all measuring code of commit 62553e5.
EARLIER = "35997727900597df6bbfc417215ab4fd05ca52d295fcf102ecda5b2217e36add"
#: The data source of the golden study that imports what has changed since: how images are flipped.
MEASURES_OTHERWISE = "zmq"


def checkout(folder: Path, changes: dict[str, str]) -> Path:
    """Return a copy of the package in which these texts are appended to files, which may be new."""
    package = folder / "dlperf_study"
    for room in ("programs", "machines", "evidence"):
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
        ({"programs/models/resnet_of_mine.py": "MODEL = 1\n", "machines/launchers/ssh.py": "CHANGED = 1\n"}, 0),
        ({"programs/data_sources/_samples.py": "CHANGED = 1\n"}, 0),
        ({"programs/worker/windows.py": "# A comment.\n", "machines/check/__init__.py": "CHANGED = 1\n"}, 0),
        ({"programs/worker/windows.py": "CHANGED = 1\n"}, 9),
        ({"programs/models/mobilenet_v2.py": "CHANGED = 1\n"}, 9),
        ({"machines/launchers/local.py": "CHANGED = 1\n"}, 9),
    ],
)
def test_a_finished_study_is_measured_again_if_what_it_imports_changed(plan, changes, missing, tmp_path, monkeypatch):
    cluster = load_cluster(plan.cluster)
    perform(pending_of(plan, cluster).executions, monkeypatch)
    assert pending_of(plan, cluster).executions == []
    monkeypatch.setattr(code_identity, "PACKAGE_FOLDER", checkout(tmp_path / "changed", changes))
    assert len(pending_of(plan, cluster).executions) == missing


#: Frameworks whose exchange was measured as that of the first step: what they measured is measured again.
MEASURED_OTHERWISE = ("torch_zero", "torch_tensor", "torch_pipeline")


def earlier_fingerprint(**changes: object) -> str:
    """Return the fingerprint of a configuration as version 0.1.0 made it on this machine."""
    asked = configuration(**changes)
    framework = frameworks.load(asked.framework)
    parts = {
        "configuration": asked.identifying_values(),
        "code": EARLIER,
        "library": fingerprint_module.library_version(framework, CLUSTER),
        "python": CLUSTER.python_for(asked.framework),
        "device": "cpu",
        "data_source": {},
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@pytest.mark.parametrize("framework", frameworks.names())
@pytest.mark.parametrize("model", models.names())
def test_what_an_earlier_version_measured_still_counts(framework, model):
    """If it does not, and the code that changed measures alike: ``python -m dlperf_study.execution.fingerprint``."""
    asked = {"framework": framework, "model": model}
    counts = fingerprint(configuration(**asked), CLUSTER) == earlier_fingerprint(**asked)
    assert counts is (framework not in MEASURED_OTHERWISE)


@pytest.mark.parametrize("launcher", ["local", "ssh", "slurm", "kubernetes"])
def test_a_launcher_measures_as_it_did(launcher):
    roots = measuring_code(configuration(), replace(CLUSTER, launcher=launcher)).roots
    assert code_name(roots) == json.loads(EQUIVALENT_CODE.read_text())["code"] == EARLIER


def test_what_an_earlier_version_measured_does_not_count_once_the_code_measures_otherwise(tmp_path, monkeypatch):
    changes = {"programs/models/vgg16.py": "CHANGED = 1\n"}
    monkeypatch.setattr(code_identity, "PACKAGE_FOLDER", checkout(tmp_path, changes))
    same, other = {"model": "resnet50"}, {"model": "vgg16"}
    assert fingerprint(configuration(**same), CLUSTER) == earlier_fingerprint(**same)
    assert fingerprint(configuration(**other), CLUSTER) != earlier_fingerprint(**other)


@pytest.fixture
def golden_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """The cluster that measured the golden study, whose evidence is unpacked, and what was installed there."""
    with tarfile.open(EVIDENCE) as archive:
        archive.extractall(tmp_path, filter="data")
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    record = next((tmp_path / "golden_study" / "configurations").glob("torch_ddp*/runs/1/run.json"))
    software = json.loads(record.read_text())["environment"]["software"]
    monkeypatch.setattr(fingerprint_module, "library_version", lambda framework, _: framework.version_in(software))
    monkeypatch.setattr(fingerprint_module, "data_source_versions", partial(versions_of_source, software))
    cluster = load_cluster(EVIDENCE.with_name("golden_cluster.yaml"))
    return replace(cluster, python={DEFAULT: "/tmp/gold/venv/bin/python"})


def versions_of_source(software: dict[str, str], asked: Configuration, _: Cluster) -> dict[str, str | None]:
    return {package: software.get(package) for package in data_sources.load(asked.data_source).packages}


def test_of_the_golden_study_which_an_earlier_version_measured_only_what_changed_is_measured_again(golden_cluster):
    plan = Plan.read(StudyPaths.of("golden_study").plan_file)
    outcomes = Counter[str]()
    # The folder of images is in a fingerprint, and was another.
    for entry in (entry for entry in plan.runnable if entry.configuration.image_set == "none"):
        for state in states_of(requested_runs(entry.configuration, golden_cluster)):
            still_counts = entry.configuration.data_source != MEASURES_OTHERWISE
            assert (state.facts is not None) == (state.run.paths.run_file.exists() and still_counts)
            outcomes.update([state.facts["outcome"]] if state.facts else [])
    assert outcomes == {"completed": 52, "failed": 3, "out_of_memory": 1}
