"""What a run requests of the API, on a real port, and what is left there; pods have a status and run nothing."""

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from dlperf_study.core.errors import StudyFileError
from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.kubernetes import kubernetes_run as run_module
from dlperf_study.machines.kubernetes.api import KubernetesSettings
from dlperf_study.machines.kubernetes.pods import evidence_lines
from dlperf_study.machines.launchers import kubernetes as launcher
from dlperf_study.study.job import JobResult, RunStatus
from tests.command_line import wait_for
from tests.machines import submissions
from tests.machines.clusters.kubernetes import FakeKubernetes, Kubelet, fake_kubernetes
from tests.machines.launchers.kubernetes_runs import VERSIONS, ended, submission
from tests.training.frameworks.launching import configuration

SECRET = "s3cret-of-this-test"
COMPLETED = JobResult(RunStatus.COMPLETED, "", 1.0)


@pytest.fixture
def kubelet() -> Kubelet:
    return Kubelet()


@pytest.fixture
def api(kubelet: Kubelet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeKubernetes]:
    monkeypatch.setattr(run_module, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(run_module, "PATIENCE_SECONDS", 0.2)
    with fake_kubernetes(tmp_path, kubelet) as served:
        yield served
        assert served.objects == {}, "a run leaves nothing"


def cluster_of(api: FakeKubernetes, **changes: Any) -> Cluster:
    settings = KubernetesSettings(kubeconfig=str(api.kubeconfig), images={"default": "i"}, **changes)
    return Cluster("test", 2, 1, "cpu", "a CPU", "kubernetes", shared_files=False, settings=settings)


def execute(api: FakeKubernetes, folder: Path, start_within_seconds: float = 5, **changes: Any) -> JobResult:
    cluster = cluster_of(api, start_within_seconds=start_within_seconds)
    changed = submissions.changed(submission(configuration(nodes=2), cluster, folder), **changes)
    [result] = launcher.execute([changed], cluster, 60)
    return result


def succeed(kubelet: Kubelet, result: JobResult = COMPLETED) -> None:
    """Let the first pod end well, having printed this result and no files."""
    kubelet.statuses["trainer-0"] = {"phase": "Succeeded"}
    with tempfile.TemporaryDirectory() as folder:
        kubelet.logs["trainer-0"] = "\n".join(["a warning", *evidence_lines(Path(folder), result)])


class Died(BaseException):
    """What happens to a controller that is killed: nothing is done any more."""


def begin_and_die(api: FakeKubernetes, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the objects of a run, and go."""

    def die(run: run_module.KubernetesRun) -> None:
        raise Died

    with monkeypatch.context() as dying:
        dying.setattr(run_module, "wait", die)
        dying.setattr(run_module, "delete_objects", lambda api, selector: None)
        with pytest.raises(Died):
            execute(api, folder)
    assert api.objects


def test_the_result_comes_from_the_log_of_the_first_pod(api, kubelet, tmp_path):
    result = JobResult(RunStatus.COMPLETED, "", 3.5, {"node-0": 0}, started="2026-01-01T00:00:00+00:00")
    succeed(kubelet, result)
    assert execute(api, tmp_path) == result


def test_everything_belongs_to_the_first_job_and_ends_by_itself(api, kubelet, tmp_path):
    succeed(kubelet)
    execute(api, tmp_path)
    first, *others = [manifest for manifest in api.created if manifest["kind"] != "Pod"]
    assert [manifest["kind"] for manifest in (first, *others)] == ["Job", "Job", "Service", "Secret"]
    for manifest in others:
        assert [owner["uid"] for owner in manifest["metadata"]["ownerReferences"]] == [first["metadata"]["uid"]]
    for job in (first, others[0]):
        assert (job["spec"]["ttlSecondsAfterFinished"], job["spec"]["backoffLimit"]) == (3600, 0)
        assert 60 < job["spec"]["activeDeadlineSeconds"] < 3600
    for version in VERSIONS:
        for manifest in (first, *others):
            metadata = {key: value for key, value in manifest["metadata"].items() if key != "uid"}
            kubernetes_validate.validate({**manifest, "metadata": metadata}, version, strict=True)


def test_secrets_are_in_the_secret_and_nowhere_else(api, kubelet, tmp_path):
    succeed(kubelet)
    execute(api, tmp_path, environment={"SOME_API_KEY": SECRET})
    holders = [manifest["kind"] for manifest in api.created if SECRET in json.dumps(manifest)]
    assert holders == ["Secret"]
    assert [file for file in tmp_path.rglob("*") if file.is_file() and SECRET in file.read_text()] == []
    [secret] = [manifest for manifest in api.created if manifest["kind"] == "Secret"]
    assert "PRIVATE KEY" in secret["stringData"]["certificate.pem"]


def test_a_pod_that_does_not_start_ends_the_run_with_the_reason(api, kubelet, tmp_path):
    waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "i"'}
    kubelet.statuses["trainer-0"] = {"phase": "Pending", "containerStatuses": [{"state": {"waiting": waiting}}]}
    result = execute(api, tmp_path, start_within_seconds=0.1)
    assert result.status is RunStatus.FAILED
    assert result.reason.startswith("not started within 0 s: pod trainer-0: ImagePullBackOff: Back-off pulling")


def test_a_pod_that_ends_without_evidence_is_named_and_its_log_is_kept(api, kubelet, tmp_path):
    kubelet.statuses["trainer-0"] = ended(exitCode=1)["status"]
    kubelet.logs["trainer-0"] = "ModuleNotFoundError: No module named 'dlperf_study'\n"
    result = execute(api, tmp_path)
    assert (result.status, result.seconds) == (RunStatus.FAILED, None)
    assert result.started, "when it was requested"
    assert "pod trainer-0" in result.reason
    assert "No module named" in (tmp_path / "runs" / "1" / "trainer-0.log").read_text()


def test_another_pod_that_fails_ends_the_run_even_if_the_first_does_not_notice(api, kubelet, tmp_path, snapshot):
    kubelet.statuses |= {"trainer-0": {"phase": "Running"}, "trainer-1": ended(exitCode=3)["status"]}
    assert execute(api, tmp_path).reason == snapshot


def test_what_the_api_refuses_is_the_reason(api, tmp_path):
    api.refusals["POST", "secrets"] = 'secrets is forbidden: User "me" cannot create resource "secrets"'
    result = execute(api, tmp_path)
    assert result.status is RunStatus.FAILED
    assert result.reason.endswith('/secrets: 403 secrets is forbidden: User "me" cannot create resource "secrets"')


def test_objects_that_are_left_are_in_the_reason(api, kubelet, tmp_path):
    succeed(kubelet)
    api.refusals["DELETE", "jobs"] = "jobs is forbidden"
    result = execute(api, tmp_path)
    assert result.status is RunStatus.COMPLETED
    assert re.match(
        r"objects labelled dlperf-study/run=dlperf-\w+ may be left: .*: 403 jobs is forbidden", result.reason
    )
    for key in list(api.objects):
        api.delete(*key)
    wait_for(lambda: not api.objects, "their pods to end")


def test_a_run_whose_driver_died_is_followed(api, kubelet, tmp_path, monkeypatch):
    begin_and_die(api, tmp_path, monkeypatch)
    before = len(api.created)
    (tmp_path / "runs" / "1" / "kept").touch()
    succeed(kubelet)
    assert execute(api, tmp_path).status is RunStatus.COMPLETED
    assert len(api.created) == before
    assert (tmp_path / "runs" / "1" / "kept").exists(), "its folder is the one of the run that is followed"


def test_a_different_request_for_the_same_folder_is_not_followed(api, kubelet, tmp_path, monkeypatch):
    begin_and_die(api, tmp_path, monkeypatch)
    jobs = sum(manifest["kind"] == "Job" for manifest in api.created)
    succeed(kubelet)
    assert execute(api, tmp_path, cache_key="of other code").status is RunStatus.COMPLETED
    assert sum(manifest["kind"] == "Job" for manifest in api.created) == 2 * jobs


def test_cancel_deletes_what_a_dead_driver_left(api, tmp_path, monkeypatch):
    begin_and_die(api, tmp_path, monkeypatch)
    launcher.cancel(tmp_path, cluster_of(api))


def test_a_kubeconfig_without_the_context_is_an_error_in_the_cluster_file(api, tmp_path):
    with pytest.raises(StudyFileError, match="elsewhere"):
        launcher.cancel(tmp_path, cluster_of(api, context="elsewhere"))
