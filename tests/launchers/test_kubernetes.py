"""What is made in Kubernetes for a run, what pods say, and what the API is asked: nothing is trained here."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from dlperf_study import frameworks
from dlperf_study.errors import EvidenceError, StudyFileError
from dlperf_study.launchers import kubernetes as launcher
from dlperf_study.launchers._base import Ending, Submission
from dlperf_study.launchers._kubernetes import parcel, states
from dlperf_study.launchers._kubernetes import run as run_module
from dlperf_study.launchers._kubernetes.coordinate import Evidence
from dlperf_study.launchers._kubernetes.manifests import CONFIGURATION_LABEL, configuration_label
from dlperf_study.paths import PROJECT
from dlperf_study.study.cluster import Cluster, Kubernetes
from dlperf_study.study.cluster_file import load_cluster
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.outcome import Outcome
from tests.clusters.kubernetes import FakeKubernetes, Scripted, fake_kubernetes
from tests.frameworks.launching import asynchronous, configuration
from tests.golden_file import check

FOLDER = Path("/outputs/example/configurations/one")
VERSIONS = [f"1.{minor}" for minor in range(25, int(kubernetes_validate.latest_version().split(".")[1]) + 1)]
SECRET = "s3cret-of-this-test"


def submission(asked: Configuration, cluster: Cluster, folder: Path = FOLDER) -> Submission:
    job = frameworks.load(asked.framework).job(asked, cluster)
    return launcher.render(replace(job, framework=asked.framework), cluster, folder / "runs" / "1")


def objects(asked: Configuration, cluster: Cluster) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(submission(asked, cluster).files["kubernetes.yaml"]))


ASKED = {
    "all_reduce": configuration(nodes=2, devices_per_node=8),
    "parameter_server": replace(asynchronous(1), nodes=2, servers=3),
    "horovod": configuration(nodes=2, framework="horovod_torch"),
}


def with_operator() -> Cluster:
    cluster = load_cluster("kubernetes")
    return replace(cluster, kubernetes=replace(cluster.kubernetes, mpi_operator=True))


def test_horovod_is_an_mpi_job_where_the_operator_is() -> None:
    text = submission(ASKED["horovod"], with_operator()).files["kubernetes.yaml"]
    check("submissions/kubernetes-mpi_job.yaml", text)
    job, *_ = yaml.safe_load_all(text)
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
    for replicas in job["spec"]["mpiReplicaSpecs"].values():
        template = replicas["template"]
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", **template["metadata"]}, **template}
        kubernetes_validate.validate({**made, "spec": template["spec"]}, VERSIONS[-1], strict=True)


@pytest.mark.parametrize("name", ["all_reduce", "parameter_server"])
def test_other_frameworks_are_jobs_all_the_same(name: str) -> None:
    assert {made["kind"] for made in objects(ASKED[name], with_operator())} >= {"Job", "Service"}


@pytest.mark.parametrize("name", ASKED)
def test_manifests(name: str) -> None:
    check(
        f"submissions/kubernetes-{name}.yaml",
        submission(ASKED[name], load_cluster("kubernetes")).files["kubernetes.yaml"],
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ASKED)
def test_manifests_are_valid_in_every_supported_version(name: str, version: str) -> None:
    for made in objects(ASKED[name], load_cluster("kubernetes")):
        kubernetes_validate.validate(made, version, strict=True)


def test_a_mistake_in_a_manifest_would_be_seen() -> None:
    """Otherwise the silence of the last test would mean nothing."""
    job, *_ = objects(configuration(), load_cluster("kubernetes"))
    job["spec"]["backofLimit"] = 0
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, VERSIONS[0], strict=True)


def test_servers_have_pods_of_their_own_and_their_own_address() -> None:
    rendered = submission(ASKED["parameter_server"], load_cluster("kubernetes"))
    nodes = {command.name: command.node for command in rendered.commands}
    assert (rendered.nodes, nodes) == (
        4,
        {"server-0": 2, "server-1": 3, "server-2": 2, "trainer-0": 0, "trainer-1": 1},
    )
    servers = rendered.commands[0].environment["PADDLE_PSERVERS_IP_PORT_LIST"]
    assert servers == "{host_2}:{port_0},{host_3}:{port_1},{host_2}:{port_2}"


def test_trainers_take_all_gpus_and_servers_none() -> None:
    made = objects(ASKED["parameter_server"], load_cluster("kubernetes"))
    limits = [
        job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] for job in made if job["kind"] == "Job"
    ]
    assert [limit.get("nvidia.com/gpu") for limit in limits] == ["8", "8", None, None]


def test_a_framework_without_an_image_is_refused() -> None:
    cluster = load_cluster("kubernetes")
    without = replace(cluster, kubernetes=replace(cluster.kubernetes, images={"torch_ddp": "torch:1"}))
    with pytest.raises(StudyFileError, match=r"kubernetes\.images has none for paddle_collective, and no default"):
        submission(configuration(), without)


def test_a_parcel_is_read_from_between_other_lines() -> None:
    text = "x" * 9000
    sent = list(parcel.lines_of(text))
    assert max(map(len, sent)) < 5000
    assert parcel.text_in("\n".join(["noise", *sent[:1], "a warning", *sent[1:]])) == text
    assert parcel.text_in("nothing but noise\n") is None


@pytest.mark.parametrize("lost", [0, 1, -1])
def test_a_parcel_that_lacks_a_line_is_an_error(lost: int) -> None:
    sent = list(parcel.lines_of("x" * 9000))
    del sent[lost]
    with pytest.raises(EvidenceError, match="only a part of the evidence"):
        parcel.text_in("\n".join(sent))


def pod(phase: str, **status: Any) -> dict[str, Any]:
    spec = {"hostname": "trainer-1", "nodeName": "node-7"}
    return {"metadata": {"name": "x"}, "spec": spec, "status": {"phase": phase, **status}}


def ended(**terminated: Any) -> dict[str, Any]:
    return pod("Failed", containerStatuses=[{"state": {"terminated": terminated}}])


@pytest.mark.parametrize(
    ("seen", "outcome", "reason"),
    [
        (ended(exitCode=1, reason="Error"), Outcome.FAILED, "pod trainer-1 on node-7 exited with code 1"),
        (ended(exitCode=137, reason="OOMKilled"), Outcome.FAILED, "used more memory than its limit"),
        (pod("Failed", reason="Evicted", message="low on memory"), Outcome.KILLED, "node-7: Evicted: low on memory"),
        (pod("Failed", reason="DeadlineExceeded"), Outcome.TIMEOUT, "DeadlineExceeded"),
        (pod("Failed", reason="NodeLost"), Outcome.FAILED, "pod trainer-1 on node-7: NodeLost"),
    ],
)
def test_how_a_pod_ended(seen: dict[str, Any], outcome: Outcome, reason: str) -> None:
    end = states.end_of(seen)
    assert end
    assert end.outcome is outcome
    assert reason in end.reason
    assert end.out_of_memory == ("memory than" in reason)


def test_a_pod_that_runs_or_succeeded_has_not_failed() -> None:
    assert [states.end_of(pod(phase)) for phase in ("Pending", "Running", "Succeeded")] == [None] * 3


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({}, "no node has been found for it yet"),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"}]},
            "Unschedulable: 0/3",
        ),
        ({"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}, "ImagePullBackOff"),
    ],
)
def test_why_a_pod_waits(status: dict[str, Any], words: str) -> None:
    assert states.waiting_words([pod("Pending", **status), pod("Running")]) == f"pod trainer-1: {words}"


@pytest.fixture
def kubelet() -> Scripted:
    return Scripted()


@pytest.fixture
def api(kubelet: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeKubernetes]:
    monkeypatch.setattr(run_module, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(run_module, "PATIENCE_SECONDS", 0.2)
    with fake_kubernetes(tmp_path, kubelet) as served:
        yield served
        assert served.objects == {}, "a run leaves nothing"


def execute(api: FakeKubernetes, folder: Path, start_within_seconds: float = 5, **changes: Any) -> Ending:
    settings = Kubernetes(
        kubeconfig=str(api.kubeconfig), images={"default": "i"}, start_within_seconds=start_within_seconds
    )
    cluster = Cluster("test", 2, 1, "cpu", "a CPU", "kubernetes", shared_files=False, kubernetes=settings)
    asked = replace(submission(configuration(nodes=2), cluster, folder), **changes)
    [ending] = launcher.execute([asked], cluster, 60)
    return ending


def sent(ending: Ending) -> str:
    """Return the log of a pod that sends this ending, and no files."""
    return "\n".join(["a warning", *parcel.lines_of(Evidence(ending, "").as_text())])


def test_the_ending_comes_from_the_log_of_the_first_pod(api: FakeKubernetes, kubelet: Scripted, tmp_path: Path) -> None:
    kubelet.statuses["trainer-0"] = {"phase": "Succeeded"}
    told = Ending(Outcome.COMPLETED, "", 3.5, {"node-0": 0}, started="2026-01-01T00:00:00+00:00")
    kubelet.logs["trainer-0"] = sent(told)
    assert execute(api, tmp_path) == told


def test_everything_belongs_to_the_first_job_and_ends_by_itself(
    api: FakeKubernetes, kubelet: Scripted, tmp_path: Path
) -> None:
    kubelet.statuses["trainer-0"] = {"phase": "Succeeded"}
    kubelet.logs["trainer-0"] = sent(Ending(Outcome.COMPLETED, "", 1.0))
    execute(api, tmp_path)
    first, *rest = [made for made in api.created if made["kind"] != "Pod"]
    assert [made["kind"] for made in (first, *rest)] == ["Job", "Job", "Service", "ConfigMap", "Secret"]
    for made in rest:
        assert [owner["uid"] for owner in made["metadata"]["ownerReferences"]] == [first["metadata"]["uid"]]
    for job in (first, rest[0]):
        assert (job["spec"]["ttlSecondsAfterFinished"], job["spec"]["backoffLimit"]) == (3600, 0)
        assert 60 < job["spec"]["activeDeadlineSeconds"] < 3600
    for version in VERSIONS:
        for made in (first, *rest):
            plain = {**made, "metadata": {k: v for k, v in made["metadata"].items() if k != "uid"}}
            kubernetes_validate.validate(plain, version, strict=True)


def test_secrets_are_in_the_secret_and_nowhere_else(api: FakeKubernetes, kubelet: Scripted, tmp_path: Path) -> None:
    kubelet.statuses["trainer-0"] = {"phase": "Succeeded"}
    kubelet.logs["trainer-0"] = sent(Ending(Outcome.COMPLETED, "", 1.0))
    execute(api, tmp_path, environment={"SOME_API_KEY": SECRET})
    holders = [made["kind"] for made in api.created if SECRET in json.dumps(made)]
    assert holders == ["Secret"]
    assert [file for file in tmp_path.rglob("*") if file.is_file() and SECRET in file.read_text()] == []
    [secret] = [made for made in api.created if made["kind"] == "Secret"]
    assert re.fullmatch("[0-9a-f]{64}", secret["stringData"]["token"])


def test_a_pod_that_does_not_start_ends_the_run_with_the_reason(
    api: FakeKubernetes, kubelet: Scripted, tmp_path: Path
) -> None:
    waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "i"'}
    kubelet.statuses["trainer-0"] = {"phase": "Pending", "containerStatuses": [{"state": {"waiting": waiting}}]}
    ending = execute(api, tmp_path, start_within_seconds=0.1)
    assert ending.outcome is Outcome.FAILED
    assert ending.reason.startswith("not started within 0 s: pod trainer-0: ImagePullBackOff: Back-off pulling")


def test_a_pod_that_ends_without_evidence_is_named_and_its_words_are_kept(
    api: FakeKubernetes, kubelet: Scripted, tmp_path: Path
) -> None:
    kubelet.statuses["trainer-0"] = ended(exitCode=1)["status"]
    kubelet.logs["trainer-0"] = "ModuleNotFoundError: No module named 'dlperf_study'\n"
    ending = execute(api, tmp_path)
    assert (ending.outcome, ending.seconds) == (Outcome.FAILED, None)
    assert ending.started, "when it was asked for"
    assert "pod trainer-0" in ending.reason
    assert "No module named" in (tmp_path / "runs" / "1" / "trainer-0.log").read_text()


def test_another_pod_that_fails_ends_the_run_even_if_the_first_does_not_notice(
    api: FakeKubernetes, kubelet: Scripted, tmp_path: Path
) -> None:
    kubelet.statuses |= {"trainer-0": {"phase": "Running"}, "trainer-1": ended(exitCode=3)["status"]}
    assert execute(api, tmp_path).reason == "pod trainer-1 on no node exited with code 3"


def test_what_the_api_refuses_is_said(api: FakeKubernetes, tmp_path: Path) -> None:
    api.refusals["POST", "secrets"] = 'secrets is forbidden: User "me" cannot create resource "secrets"'
    ending = execute(api, tmp_path)
    assert ending.outcome is Outcome.FAILED
    assert ending.reason.endswith('/secrets: 403 secrets is forbidden: User "me" cannot create resource "secrets"')


def test_that_objects_are_left_is_said(api: FakeKubernetes, kubelet: Scripted, tmp_path: Path) -> None:
    kubelet.statuses["trainer-0"] = {"phase": "Succeeded"}
    kubelet.logs["trainer-0"] = sent(Ending(Outcome.COMPLETED, "", 1.0))
    api.refusals["DELETE", "jobs"] = "jobs is forbidden"
    ending = execute(api, tmp_path)
    assert ending.outcome is Outcome.COMPLETED
    assert re.match(
        r"objects labelled dlperf-study/run=dlperf-\w+ may be left: .*: 403 jobs is forbidden", ending.reason
    )
    for key in list(api.objects):
        api.delete(*key)


def test_a_run_whose_driver_died_is_followed(
    api: FakeKubernetes, kubelet: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Died(BaseException):
        pass

    def die(*arguments: object) -> None:
        raise Died

    with monkeypatch.context() as dying:
        dying.setattr(run_module, "wait", die)
        dying.setattr(run_module.Run, "_clean_up", lambda run: "")
        with pytest.raises(Died):
            execute(api, tmp_path)
    before = len(api.created)
    (tmp_path / "runs" / "1" / "mine").touch()
    kubelet.statuses["trainer-0"] = {"phase": "Succeeded"}
    kubelet.logs["trainer-0"] = sent(Ending(Outcome.COMPLETED, "", 1.0))
    assert execute(api, tmp_path).outcome is Outcome.COMPLETED
    assert len(api.created) == before
    assert (tmp_path / "runs" / "1" / "mine").exists(), "its folder is the one of the run that is followed"


def test_another_order_for_the_same_folder_is_not_followed(
    api: FakeKubernetes, kubelet: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as dying:
        dying.setattr(run_module, "wait", lambda run: (_ for _ in ()).throw(KeyboardInterrupt))
        dying.setattr(run_module.Run, "_clean_up", lambda run: "")
        assert execute(api, tmp_path).interrupted
    jobs = sum(made["kind"] == "Job" for made in api.created)
    kubelet.statuses["trainer-0"] = {"phase": "Succeeded"}
    kubelet.logs["trainer-0"] = sent(Ending(Outcome.COMPLETED, "", 1.0))
    assert execute(api, tmp_path, fingerprint="of other code").outcome is Outcome.COMPLETED
    assert sum(made["kind"] == "Job" for made in api.created) == 2 * jobs


def test_cancel_deletes_what_a_dead_driver_left(
    api: FakeKubernetes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as dying:
        dying.setattr(run_module, "wait", lambda run: (_ for _ in ()).throw(KeyboardInterrupt))
        dying.setattr(run_module.Run, "_clean_up", lambda run: "")
        execute(api, tmp_path)
    assert api.objects
    settings = Kubernetes(kubeconfig=str(api.kubeconfig), images={"default": "i"})
    cluster = Cluster("test", 2, 1, "cpu", "a CPU", "kubernetes", shared_files=False, kubernetes=settings)
    launcher.cancel(tmp_path, cluster)


def test_a_traced_run_is_found_by_the_folder_of_its_configuration() -> None:
    cluster = load_cluster("kubernetes")
    runs = (submission(ASKED["horovod"], cluster, folder) for folder in (FOLDER, FOLDER / "trace" / "other"))
    made = [one for run in runs for one in yaml.safe_load_all(run.files["kubernetes.yaml"])]
    assert {one["metadata"]["labels"][CONFIGURATION_LABEL] for one in made} == {configuration_label(str(FOLDER))}


def test_a_kubeconfig_without_the_context_is_a_mistake_in_the_cluster_file(api: FakeKubernetes, tmp_path: Path) -> None:
    settings = Kubernetes(kubeconfig=str(api.kubeconfig), context="elsewhere", images={"default": "i"})
    cluster = Cluster("test", 2, 1, "cpu", "a CPU", "kubernetes", shared_files=False, kubernetes=settings)
    with pytest.raises(StudyFileError, match="elsewhere"):
        launcher.cancel(tmp_path, cluster)


@pytest.mark.parametrize("recipe", sorted((PROJECT / "images").glob("*.Dockerfile")), ids=lambda recipe: recipe.stem)
def test_an_image_is_made_of_what_there_is(recipe: Path) -> None:
    text = recipe.read_text()
    copied = [word for line in re.findall(r"^COPY (.*)$", text, re.MULTILINE) for word in line.split()[:-1]]
    assert copied
    assert [name for name in copied if not (PROJECT / name).exists()] == []
    kept = (PROJECT / ".dockerignore").read_text().splitlines()
    assert [name for name in copied if f"!{name}" not in kept and not name.startswith("requirements")] == []
    assert f"docker build -f images/{recipe.name} " in text
