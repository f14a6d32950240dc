"""What `check` says of a cluster, row by row, and with which exit code."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlperf_study.__main__ import main
from dlperf_study.core.code_identity import check_roots, code_digest
from dlperf_study.machines import launchers
from dlperf_study.machines.check import CheckResult, CheckStatus, describe, missing, nodes, ok
from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.cluster.software import software
from dlperf_study.machines.kubernetes.api import KubernetesSettings
from dlperf_study.machines.launchers import kubernetes
from dlperf_study.machines.launchers.slurm import allocation_argv, refusal
from dlperf_study.machines.node_agent.probe import unreachable
from dlperf_study.machines.slurm.script import SlurmSettings
from dlperf_study.study.gpu_support import GpuSupport
from dlperf_study.training import frameworks
from dlperf_study.training.questions import program_facts
from tests.command_line import CLUSTER
from tests.docs import first_cells
from tests.machines.clusters.kubernetes import FakeKubernetes, Kubelet, fake_kubernetes
from tests.nvidia_smi import A100

TWO = Cluster("two", 2, 4, "cpu", "a CPU", "ssh", hosts=("one", "two"), shared_files=False)
PROGRAMS = program_facts()
GPUS = replace(TWO, device="gpu", device_name="Tesla V100")
VERSIONS = {"paddlepaddle": "3.0.0", "torch": "2.13.0", "horovod": "0.28.1", "tensorflow-cpu": "2.20.0"}
SOFTWARE: dict[str, Any] = VERSIONS | {"system": "Linux"}


def facts(**changes: Any) -> dict[str, Any]:
    brought = {"code": "c0de", "software": SOFTWARE}
    of_frameworks = dict.fromkeys(frameworks.names(), brought)
    # It has a Python of its own.
    of_frameworks["horovod_tensorflow"] = {"code": "c0de", "software": SOFTWARE | {"tensorflow-cpu": "2.15.1"}}
    return {
        "hardware": {"host": "one", "cpu_model": "a CPU", "cores": 4},
        "code": "c0de",
        "busy_cores": 0.1,
        "gpu_processes": [],
        "free_memory_bytes": 64e9,
        "address": {"address": "10.0.0.1", "interface": "eth0"},
        "work_folder": "/scratch",
        "free_disk_bytes": 9e9,
        "is_writable": True,
        "sees_shared_file": False,
        "software": of_frameworks,
        **changes,
    }


def test_a_node_that_has_all_is_ok_everywhere():
    results = list(nodes.check_node(TWO, "one", facts()))
    assert {result.status for result in results} == {CheckStatus.OK}
    assert [result.subject for result in results] == [
        f"one: {what}" for what in ("reached", "devices", "idle", "memory", "/scratch", "address")
    ]


@pytest.mark.parametrize(
    ("cluster", "changes", "subject", "status", "words"),
    [
        (replace(TWO, devices_per_node=8), {}, "devices", CheckStatus.MISSING, "4 × a CPU"),
        (replace(TWO, device_name="a faster CPU"), {}, "devices", CheckStatus.NOTE, "'a faster CPU'"),
        (GPUS, {}, "devices", CheckStatus.MISSING, "0 × no GPU"),
        (TWO, {"busy_cores": 3.0}, "idle", CheckStatus.NOTE, "3.0 cores busy"),
        (TWO, {"gpu_processes": ["7, python, 9 MiB"]}, "GPUs idle", CheckStatus.NOTE, "in use: 7, python, 9 MiB"),
        (TWO, {"free_memory_bytes": 1e9}, "memory", CheckStatus.MISSING, "1.0 GB free"),
        (TWO, {"is_writable": False}, "/scratch", CheckStatus.MISSING, "cannot be made or written"),
        (TWO, {"free_disk_bytes": 1e6}, "/scratch", CheckStatus.MISSING, "0.0 GB free"),
        (TWO, {"address": {"error": "which address?"}}, "address", CheckStatus.MISSING, "which address?"),
        (replace(TWO, shared_files=True), {}, "outputs/", CheckStatus.MISSING, "not the folder of this machine"),
    ],
)
def test_what_a_node_lacks(cluster, changes, subject, status, words):
    results = {f.subject: f for f in nodes.check_node(cluster, "one", facts(**changes))}
    result = results.pop(f"one: {subject}")
    assert result.status is status
    assert words in f"{result.detail} {result.remedy}"
    assert {other.status for other in results.values()} == {CheckStatus.OK}


@pytest.mark.parametrize(("name", "status"), [("Tesla V100", CheckStatus.OK), (A100, CheckStatus.MISSING)])
def test_gpus_are_counted_and_named(name, status):
    hardware = {"host": "one", "cpu_model": "a CPU", "cores": 4, "gpu_names": "; ".join([name] * 4)}
    results = {f.subject: f for f in nodes.check_node(GPUS, "one", facts(hardware=hardware))}
    result = results["one: devices"]
    assert (result.status, result.detail) == (status, f"4 × {name}")
    assert ("write device_name: " in result.remedy) is (status is CheckStatus.MISSING)


def test_a_framework_on_gpus_is_ok_with_the_versions_that_it_is_built_with(snapshot):
    support = {"cuda": "12.6", "cudnn": "9.5.1", "nccl": "2.25.1", "gpus": ["Tesla V100"] * 4, "obstacle": ""}
    answers = dict.fromkeys(frameworks.names()) | {"torch_ddp": support, "paddle_collective": support | {"gpus": []}}
    answers["horovod_torch"] = {"error": "python exited with code 1: no libhorovod"}
    results = rows(GPUS, {"one": facts(gpu_support=answers)})
    expected = {
        "torch_ddp": CheckStatus.OK,
        "paddle_collective": CheckStatus.MISSING,
        "paddle_ps": CheckStatus.NOTE,
        "horovod_torch": CheckStatus.MISSING,
    }
    for framework, status in expected.items():
        assert (results[framework].status, results[framework].detail) == (status, snapshot)


def rows(cluster: Cluster, facts_of_nodes: dict[str, dict[str, Any]], clock: float = 0.0) -> dict[str, CheckResult]:
    """Return what is said of nodes together, by its subject; their clocks are wrong by so many seconds."""
    clocks = dict.fromkeys(facts_of_nodes, clock)
    return {result.subject: result for result in nodes.check_together(cluster, PROGRAMS, facts_of_nodes, clocks)}


def together(**of_two: Any) -> dict[str, CheckResult]:
    return rows(TWO, {"one": facts(), "two": facts(**of_two)}, clock=0.2)


def test_the_page_explains_every_row_about_nodes():
    hardware = facts()["hardware"] | {"network": "100 Gbit/s"}
    of_node = facts(hardware=hardware, gpu_processes=["7, python, 9 MiB"])
    images = replace(TWO, image_datasets={"imagenet": "/data/imagenet"})
    datasets = {"imagenet": {"error": "no such folder"}}
    results = [
        *nodes.check_node(TWO, "one", of_node),
        *nodes.check_node(replace(TWO, shared_files=True), "one", of_node),
        *nodes.check_together(images, PROGRAMS, {"one": of_node | {"image_datasets": datasets}}, {"one": 0.0}),
    ]
    subjects = {result.subject.removeprefix("one: ").replace(" imagenet", "") for result in results}
    explained = set(first_cells("docs/clusters.md", "## Rows of the check"))
    assert subjects - {"/scratch", *frameworks.names()} <= explained


def test_nodes_with_the_same_packages_are_ok_together(snapshot):
    results = together()
    assert {result.status for result in results.values()} == {CheckStatus.OK}
    assert results["horovod_torch"].detail == snapshot


def test_another_version_on_one_node_is_named(snapshot):
    other = {"code": "c0de", "software": SOFTWARE | {"torch": "2.12.0"}}
    results = together(software=facts()["software"] | {"torch_ddp": other})
    assert results["torch_ddp"].status is CheckStatus.MISSING
    assert results["torch_ddp"].detail == snapshot
    assert results["paddle_ps"].status is CheckStatus.OK


def test_a_python_that_is_named_and_lacks_its_library_is_missing(snapshot):
    software = facts()["software"] | {"torch_ddp": {"code": "c0de", "software": {"system": "Linux"}}}
    facts_by_node = {"one": facts(software=software)}
    for python, status in (
        ({"torch_ddp": "/a/python"}, CheckStatus.MISSING),
        ({"default": "/a/python"}, CheckStatus.NOTE),
    ):
        result = rows(replace(TWO, python=python), facts_by_node)["torch_ddp"]
        assert (result.status, result.detail) == (status, snapshot)


@pytest.mark.parametrize(
    ("framework", "versions", "detail", "remedy"),
    [
        ("horovod_tensorflow", {}, "Horovod 0.28.1 trains with TensorFlow 2.15.1", "make horovod-tensorflow"),
        ("horovod_tensorflow", {"tensorflow-cpu": None}, "not installed in ", ""),
        (
            "horovod_tensorflow",
            {"tensorflow-cpu": "2.15.1", "horovod": None},
            "horovod is not installed",
            "make horovod",
        ),
        ("horovod_torch", {"horovod": None}, "not installed in ", ""),
        ("paddle_ps", {"paddlepaddle": "3.1.0"}, "has no parameter servers", "-c locks/main.txt"),
    ],
)
def test_a_version_that_cannot_train_is_not_ok(framework, versions, detail, remedy):
    software = {name: version for name, version in (SOFTWARE | versions).items() if version}
    of_node = facts(software=facts()["software"] | {framework: {"code": "c0de", "software": software}})
    for python, status in (({}, CheckStatus.NOTE), ({framework: "/a/python"}, CheckStatus.MISSING)):
        result = rows(replace(TWO, python=python), {"one": of_node})[framework]
        assert result.status is status
        assert detail in result.detail
        assert remedy in result.remedy


def test_a_framework_that_is_nowhere_is_a_note_unless_it_is_the_last():
    nothing = {"code": "c0de", "software": {"system": "Linux"}}
    facts_by_node = {"one": facts(software=dict.fromkeys(facts()["software"], nothing))}
    results = rows(TWO, facts_by_node)
    assert (results["torch_ddp"].status, results["a framework"].status) == (CheckStatus.NOTE, CheckStatus.MISSING)


def test_a_wrong_clock_is_a_note_and_other_code_is_named(snapshot):
    clocks = rows(TWO, {"one": facts()}, clock=-7.04)["clocks"]
    assert (clocks.status, clocks.detail) == (CheckStatus.NOTE, "one -7.0 s")
    assert together(code="0ther")["benchmark code"].detail == snapshot
    assert unreachable({"nobody": ("127.0.0.1", 1)}) == ["nobody"]


def test_the_table_has_what_to_do_below_what_it_is_about():
    table = describe([ok("a", "fine"), missing("much longer", "nothing there", "bring it")])
    assert table.splitlines() == [
        "ok       a            fine",
        "missing  much longer  nothing there",
        "                      -> bring it",
    ]


def test_this_machine_is_checked_by_the_command_line(place, capsys):
    assert main(["check-cluster", str(place.cluster_file)]) == 0
    printed = capsys.readouterr().out
    assert "ok    this machine: reached" in printed
    assert "paddlepaddle 3.0.0 everywhere" in printed
    assert printed.splitlines()[-1].endswith("nothing is missing")


@pytest.mark.parametrize("python", ["/nowhere/python", "/bin/false"])
def test_a_python_that_is_named_and_of_no_use_is_missing(place, capsys, python):
    place.cluster_file.write_text(CLUSTER + f"python: {{torch_ddp: {python}}}\n")
    assert main(["check-cluster", str(place.cluster_file)]) == 1
    printed = capsys.readouterr().out
    assert re.search(rf"^missing  torch_ddp +this machine: {python} .*\n +-> python.torch_ddp in the", printed, re.M)
    assert printed.splitlines()[-1].endswith("missing: 1")


def test_a_command_that_is_not_there_ends_the_check(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    [result] = launchers.load("ssh").check(TWO, PROGRAMS)
    assert (result.status, result.detail) == (CheckStatus.MISSING, "no ssh here")


def test_slurm_is_asked_for_all_nodes_as_a_run_asks():
    settings = SlurmSettings(partition="dgx", account="me", options=["--constraint=v100"])
    cluster = Cluster("c", 4, 8, "gpu", "a GPU", "slurm", settings=settings)
    argv = allocation_argv(cluster, "a name")
    assert argv[:3] == ["salloc", "--no-shell", "--job-name=a name"]
    assert {"--nodes=4", "--partition=dgx", "--account=me", "--constraint=v100", "--gres=gpu:8"} <= set(argv)
    assert {"--exclusive", "--mem=0", "--immediate=600"} <= set(argv)


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("Invalid account or account/partition combination specified", "slurm.account is 'me'"),
        ("Invalid qos specification", "slurm.options is ['--qos=high'], and `sacctmgr show qos`"),
        ("job 7: PENDING (PartitionTimeLimit): it can never start", "a check requests 5 minutes"),
        ("Requested node configuration is not available", "the cluster file has device: gpu, devices_per_node: 8"),
        ("Invalid feature specification", "slurm.options is ['--qos=high']; "),
        ("something new", "try it by hand: salloc --nodes=4 --gres=gpu:8 --account=me --qos=high true"),
    ],
)
def test_what_slurm_refuses_names_the_key_that_may_be_why(words, remedy):
    settings = SlurmSettings(account="me", options=["--qos=high"])
    cluster = Cluster("c", 4, 8, "gpu", "a GPU", "slurm", settings=settings)
    result = refusal(cluster, words)
    assert (result.status, result.detail) == (CheckStatus.MISSING, words)
    assert result.remedy.startswith(remedy)


@pytest.fixture
def kubelet() -> Kubelet:
    return Kubelet({"trainer-0": {"phase": "Succeeded"}})


@pytest.fixture
def api(kubelet: Kubelet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeKubernetes]:
    monkeypatch.setattr(kubernetes, "POLL_SECONDS", 0.02)
    with fake_kubernetes(tmp_path, kubelet) as served:
        yield served
        assert served.objects == {}, "a check leaves nothing"


def in_kubernetes(api: FakeKubernetes, device: str = "cpu", **changes: Any) -> dict[str, CheckResult]:
    values = {"kubeconfig": str(api.kubeconfig), "images": {"default": "i:1"}, "start_within_seconds": 0.3, **changes}
    settings = KubernetesSettings(**values)
    cluster = Cluster("k", 2, 1, device, "A100", "kubernetes", shared_files=False, settings=settings)
    return {result.subject: result for result in launchers.load("kubernetes").check(cluster, PROGRAMS)}


def test_an_image_with_this_code_is_ok(api, kubelet):
    facts_of_image = {"code": code_digest(check_roots("kubernetes")), "software": software() | {"torch": "2.13.0"}}
    kubelet.logs["trainer-0"] = "a warning\n" + json.dumps(facts_of_image) + "\n"
    results = in_kubernetes(api)
    assert {result.status for result in results.values()} == {CheckStatus.OK}
    assert results["API"].detail == "Kubernetes v1.30.0-fake"
    assert "torch 2.13.0" in results["image i:1"].detail


WITH_A100 = vars(GpuSupport("12.6", "9.5.1", "2.25.1", (A100,)))


@pytest.mark.parametrize(
    ("support", "obstacle"),
    [
        ({"torch_ddp": vars(GpuSupport()), "paddle_collective": WITH_A100}, ""),
        ({"torch_ddp": vars(GpuSupport())}, "the pod: torch is built without CUDA"),
        ({"torch_ddp": WITH_A100 | {"gpus": [], "obstacle": "no controller"}}, "the run needs 1: no controller"),
        ({"torch_ddp": WITH_A100 | {"gpus": ["NVIDIA H100"]}}, "the pod has NVIDIA H100"),
        ({"torch_ddp": {"error": "libcudart.so.12 is missing"}}, "torch_ddp: libcudart.so.12 is missing"),
        ({}, "no library that trains on GPUs"),
    ],
)
def test_an_image_without_a_library_for_its_gpus_is_named(api, kubelet, support, obstacle):
    facts = {"code": code_digest(check_roots("kubernetes")), "software": software(), "gpu_support": support}
    kubelet.logs["trainer-0"] = json.dumps(facts)
    result = in_kubernetes(api, "gpu")["image i:1"]
    assert obstacle in result.detail
    assert result.status is (CheckStatus.MISSING if obstacle else CheckStatus.OK)


@pytest.mark.parametrize(
    ("status", "log", "words"),
    [
        ({"phase": "Succeeded"}, json.dumps({"code": "0ther", "software": {}}), "other benchmark code"),
        ({"phase": "Failed"}, "No module named dlperf_study", "exited with code unknown: No module named dlperf_study"),
        ({"phase": "Pending"}, "", "not done within 0 s: pod trainer-0: no node has been found for it yet"),
    ],
)
def test_an_image_that_does_not(api, kubelet, status, log, words):
    kubelet.statuses["trainer-0"], kubelet.logs["trainer-0"] = status, log
    result = in_kubernetes(api)["image i:1"]
    assert result.status is CheckStatus.MISSING
    assert words in result.detail


@pytest.mark.parametrize(("has_operator", "status"), [(True, CheckStatus.OK), (False, CheckStatus.MISSING)])
def test_the_operator_is_looked_for_where_it_is_wanted(api, has_operator, status):
    api.has_operator = has_operator
    assert in_kubernetes(api, mpi_operator=True)["mpi-operator"].status is status


def test_what_is_not_allowed_is_listed(api, snapshot):
    api.refusals |= {("create", "jobs"): "", ("get", "pods"): ""}
    results = in_kubernetes(api)
    assert results["permissions"].detail == snapshot
    assert "image i:1" not in results


def test_an_api_that_does_not_answer_is_missing(api, tmp_path):
    nowhere = tmp_path / "nowhere"
    nowhere.write_text(api.kubeconfig.read_text().replace("127.0.0.1", "127.0.0.1:1/x"))
    [result] = in_kubernetes(api, kubeconfig=str(nowhere)).values()
    assert (result.subject, result.status) == ("API", CheckStatus.MISSING)
