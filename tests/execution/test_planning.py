"""Which configurations a cluster can run."""

import sys
from dataclasses import replace

import pytest

from dlperf_study.core.errors import StudyFileError, UnsupportedError
from dlperf_study.core.resources import PARAMS
from dlperf_study.execution.libraries import data_loader_versions, library_version
from dlperf_study.execution.planning import cluster_for, make_plan, require_support, unsupported_here
from dlperf_study.study.study_file import load_study
from dlperf_study.training import data_loaders, frameworks
from dlperf_study.training.parts import require_part_names
from tests.nvidia_smi import two_a100
from tests.shell_program import program
from tests.study.examples import STUDY, write
from tests.training.frameworks.launching import CLUSTER, asynchronous, configuration

PADDLE = frameworks.load("paddle_collective")


def test_what_can_run_here():
    for asked in (configuration(devices_per_node=2), asynchronous(2)):
        assert unsupported_here(asked, CLUSTER) is None
        require_support(asked, CLUSTER)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"framework": "padle_ps"}, "study test: framework is 'padle_ps'; did you mean paddle_ps? the frameworks are "),
        (
            {"model": "resnet5"},
            "study test: model is 'resnet5'; did you mean resnet50 or resnet50_convolution_biases?",
        ),
        ({"data_loader": "fils"}, "study test: data_loader is 'fils'; did you mean files? the data loaders are "),
        (
            {"framework": "paddle_ps", "strategy": "ring"},
            "study test: strategy is 'ring'; the strategies of paddle_ps are local, async",
        ),
        (
            {"strategy": "all_redcue"},
            "study test: strategy is 'all_redcue'; did you mean all_reduce? the strategies of paddle_collective are "
            "all_reduce",
        ),
    ],
)
def test_a_name_that_nothing_bears_is_a_mistake(change, message):
    changed = replace(configuration(), study="test", **change)
    for check in (unsupported_here, require_support):
        with pytest.raises(StudyFileError) as caught:
            check(changed, CLUSTER)
        assert str(caught.value).startswith(message)


@pytest.mark.parametrize("strategy", ["geo", "sync", "async"])
def test_a_strategy_that_is_known_and_not_built_is_a_reason(strategy, snapshot):
    reason = unsupported_here(replace(configuration(), strategy=strategy), CLUSTER)
    assert reason == snapshot


def test_a_python_for_a_framework_that_does_not_exist_is_a_mistake():
    cluster = replace(CLUSTER, name="example", python={"horovod": sys.executable})
    with pytest.raises(StudyFileError) as caught:
        require_support(configuration(), cluster)
    assert str(caught.value).startswith(
        "cluster example: python has a key 'horovod'; did you mean horovod_tensorflow or horovod_torch? the "
    )


@pytest.mark.parametrize("file", sorted((PARAMS / "studies").glob("*.yaml")), ids=lambda file: file.stem)
def test_the_studies_here_name_nothing_unknown(file):
    study = load_study(file)
    for point in study.points:
        require_part_names(study.configuration(point, CLUSTER.name), study.locate)


@pytest.mark.parametrize(
    ("right", "wrong", "key"),
    [
        ("[resnet50, mobilenet_v2]", "[resnet50, vgg17]", "factors.model[1] is 'vgg17'"),
        ("strategy: all_reduce", "strategy: ring", "constants.strategy is 'ring'"),
        ("\nbaseline", "\ninclude: [{model: vgg17, devices_per_node: 1}]\nbaseline", "include[0].model is 'vgg17'"),
    ],
)
def test_the_place_of_a_wrong_name_is_said(tmp_path, right, wrong, key):
    file = write(tmp_path, STUDY.replace(right, wrong))
    with pytest.raises(StudyFileError) as caught:
        make_plan(str(file), "local", quick=False)
    assert str(caught.value).startswith(f"{file}: {key}; ")


def test_the_device_depends_on_the_frameworks_of_the_study(tmp_path, monkeypatch):
    two_a100(tmp_path, monkeypatch)
    parameter_servers = STUDY.replace("paddle_collective, strategy: all_reduce", "paddle_ps, strategy: async")
    cluster = cluster_for([load_study(write(tmp_path, parameter_servers))], "local")
    assert cluster.why_not_gpu.endswith("runs are measured on its CPU: paddle_ps trains on CPUs only")


def test_the_place_of_a_wrong_framework_is_said_on_a_machine_with_gpus_too(tmp_path, monkeypatch):
    two_a100(tmp_path, monkeypatch)
    file = write(tmp_path, STUDY.replace("paddle_collective", "padle_collective"))
    with pytest.raises(StudyFileError) as caught:
        make_plan(str(file), "local", quick=False)
    assert str(caught.value).startswith(f"{file}: constants.framework is 'padle_collective'; ")


def test_too_many_devices_are_an_error_with_the_configuration():
    three_devices = configuration(devices_per_node=3)
    with pytest.raises(UnsupportedError, match=f"{three_devices.configuration_id}: needs 3 devices on 1 node"):
        require_support(three_devices, CLUSTER)


def test_the_version_is_that_of_the_python_the_cluster_names(tmp_path):
    another = program(tmp_path, 'echo \'{"code": "", "software": {"paddlepaddle": "2.9.9"}}\'')
    here = library_version(PADDLE, CLUSTER)
    assert here == library_version(PADDLE, replace(CLUSTER, python={"paddle_collective": sys.executable}))
    assert library_version(PADDLE, replace(CLUSTER, python={"paddle_collective": another})) == "2.9.9"


def test_what_a_python_lacks_is_a_reason_and_hides_no_other_one(tmp_path):
    lacking = program(tmp_path, 'echo \'{"code": "", "software": {"torch": "2.13.0"}}\'')
    cluster = replace(CLUSTER, python={"paddle_collective": lacking})
    assert str(unsupported_here(configuration(), cluster)).startswith("paddlepaddle is not installed")
    unusable = program(tmp_path, "echo No module named dlperf_study >&2; exit 1", "unusable")
    cluster = replace(CLUSTER, python={"paddle_collective": unusable})
    reason = unsupported_here(replace(configuration(), strategy="async"), cluster)
    exited = f"{unusable} -m dlperf_study.machines.cluster.software exited with code 1: No module named dlperf_study"
    assert reason.startswith(f"the Python for paddle_collective can't be used: {exited}")
    assert reason.endswith("; and strategy async is not supported by paddle_collective (supported: all_reduce)")
    assert "not installed" not in reason


def test_a_python_that_does_not_run_is_no_reason_but_an_error(refused):
    cluster = replace(CLUSTER, name="example", python={"paddle_collective": "/nowhere/python"})
    with refused(UnsupportedError):
        unsupported_here(configuration(), cluster)


def test_a_data_source_whose_package_is_missing_is_a_reason(monkeypatch, snapshot):
    source = replace(data_loaders.load("synthetic_device"), packages=("pytest", "pip-of-nobody"))
    monkeypatch.setattr(data_loaders, "load", lambda name: source)
    assert unsupported_here(configuration(), CLUSTER) == snapshot
    assert data_loader_versions(configuration(), CLUSTER) == {"pytest": pytest.__version__, "pip-of-nobody": None}
