"""Pods that train, behind an API on a real port: what comes home, and what is left after a failure."""

import json
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.kubernetes import kubernetes_run as run_module
from dlperf_study.machines.kubernetes.api import KubernetesSettings
from dlperf_study.machines.kubernetes.manifests import NODE_FOLDER
from dlperf_study.machines.launchers import kubernetes as launcher
from dlperf_study.machines.node_agent.submission import Submission
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import Job, JobResult, Task, TaskRole
from dlperf_study.training import frameworks
from dlperf_study.training.questions import described
from tests.command_line import LIMIT_SECONDS, wait_for
from tests.machines import submissions
from tests.machines.clusters.kubernetes import FakeKubernetes, fake_kubernetes
from tests.machines.clusters.namespaces import Host
from tests.machines.clusters.pods import Pods
from tests.machines.clusters.training import FRAMEWORKS, asked_for, check_trained_together, least_traffic, traffic
from tests.programs.examples import check_recorded, example, rendered

SECRET = "s3cret-of-this-test"
TRAINERS = ["trainer-0", "trainer-1"]
pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


@pytest.fixture
def pods(hosts: tuple[Host, ...], tmp_path: Path) -> Pods:
    folder = tmp_path / "pods"
    folder.mkdir()
    return Pods(folder=folder, hosts=hosts)


@pytest.fixture
def api(pods: Pods, tmp_path: Path) -> Iterator[FakeKubernetes]:
    with fake_kubernetes(tmp_path, pods) as served:
        pods.cluster = served
        yield served
        assert served.objects == {}, "a run leaves nothing"


@pytest.fixture
def cluster(api: FakeKubernetes, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(run_module, "POLL_SECONDS", 0.1)
    settings = KubernetesSettings(
        kubeconfig=str(api.kubeconfig), images={"default": "this-machine"}, start_within_seconds=30
    )
    return Cluster(
        *("test", 4, 1, "cpu", "a CPU", "kubernetes"),
        idle_max_busy_cores=1e9,
        idle_wait_seconds=0.0,
        python={"default": sys.executable},
        shared_files=False,
        settings=settings,
    )


def submission(configuration: Configuration, cluster: Cluster, folder: Path) -> Submission:
    job = frameworks.load(configuration.framework).job(configuration, cluster)
    rendered = launcher.render(described(job, configuration, image_folder=""), cluster, folder)
    files = {**rendered.files, "configuration.json": json.dumps(configuration.as_dict())}
    return replace(rendered, files=files)


def script(*of_nodes: str, ports: int = 0) -> Job:
    """Return a job of one Python program per node."""
    tasks = tuple(
        Task(f"node-{k}", TaskRole.TRAINER, k, (sys.executable, "-c", text)) for k, text in enumerate(of_nodes)
    )
    return Job(tasks, nodes=len(tasks), ports=ports, framework="any")


def execute(job: Job, cluster: Cluster, folder: Path, timeout_seconds: float = 60, **changes: Any) -> JobResult:
    rendered = launcher.render(job, cluster, folder / "runs" / "1")
    [result] = launcher.execute([submissions.changed(rendered, **changes)], cluster, timeout_seconds)
    return result


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_pods_train_together(framework, cluster, tmp_path, api, hosts):
    configuration = asked_for(framework, 2)
    folder, before = tmp_path / "runs" / "2", traffic(hosts)
    [result] = launcher.execute([submission(configuration, cluster, folder)], cluster, 100)
    tails = {log.name: log.read_text()[-1500:] for log in folder.glob("*.log")}
    assert (result.status, result.reason) == ("completed", ""), tails
    assert traffic(hosts) - before > least_traffic(configuration)
    check_trained_together(folder, configuration, TRAINERS)
    assert [node["name"].partition(".")[0] for node in result.nodes][:2] == TRAINERS
    jobs = [
        manifest["metadata"]["labels"]["dlperf-study/role"] for manifest in api.created if manifest["kind"] == "Job"
    ]
    assert jobs == ["trainer", "trainer", *["server"] * configuration.parameter_servers]


@pytest.mark.needs("torch")
def test_a_program_reaches_pods_that_see_no_file_of_the_driver(cluster, tmp_path):
    # Pods have a /run of their own.
    with tempfile.TemporaryDirectory(dir="/run") as kept:
        run = example("per_rank", Path(kept), nodes=2)
        folder = tmp_path / "runs" / "1"
        [result] = launcher.execute([rendered(run, cluster, folder)], cluster, 100)
    check_recorded(folder, run, result, TRAINERS)


def test_what_every_pod_wrote_comes_home(cluster, tmp_path, api):
    write = "import os, sys; open('../from-' + os.uname().nodename, 'w').write('{host_1} {port_0}'); print('said')"
    result = execute(script(write, write, ports=1), cluster, tmp_path)
    assert (result.status, result.reason, result.exit_codes) == ("completed", "", {"node-0": 0, "node-1": 0})
    folder = tmp_path / "runs" / "1"
    texts = {(folder / f"from-trainer-{k}").read_text() for k in (0, 1)}
    assert len(texts) == 1
    assert [(folder / f"node-{k}.log").read_text() for k in (0, 1)] == ["said\n", "said\n"]
    assert not (folder / "scratch").exists()


def test_a_pod_that_dies_ends_the_run_and_is_named(cluster, tmp_path, api, pods):
    started = f"import time; open('{NODE_FOLDER}/started', 'w'); time.sleep(600)"

    def kill() -> None:
        wait_for(lambda: list(pods.folder.glob("*-trainer-1-*/node/started")), "the second pod to work")
        pods.kill("trainer-1")

    killer = threading.Thread(target=kill)
    killer.start()
    result = execute(script(started, started), cluster, tmp_path)
    killer.join()
    assert result.status in ("failed", "killed")
    assert "trainer-1" in result.reason


def test_a_run_that_takes_too_long_is_ended_and_its_logs_come_home(cluster, tmp_path):
    waits = "import time; print('waiting', flush=True); time.sleep(600)"
    result = execute(script(waits, waits), cluster, tmp_path, timeout_seconds=3)
    assert (result.status, result.reason) == ("timeout", "not finished after 3 s")
    assert (tmp_path / "runs" / "1" / "node-1.log").read_text() == "waiting\n"


def test_a_secret_reaches_the_training_processes_of_all_pods_and_no_file(cluster, tmp_path, pods):
    program = f"import os; print(os.environ['SOME_API_KEY'] == {SECRET[::-1]!r}[::-1])"
    result = execute(script(program, program), cluster, tmp_path, environment={"SOME_API_KEY": SECRET})
    assert (result.status, result.reason) == ("completed", "")
    folder = tmp_path / "runs" / "1"
    assert [(folder / f"node-{k}.log").read_text() for k in (0, 1)] == ["True\n", "True\n"]
    assert [file for file in folder.rglob("*") if file.is_file() and SECRET in file.read_text()] == []
    assert [file for file in pods.folder.glob("*/log") if SECRET in file.read_text()] == []


def test_an_interrupt_leaves_nothing(cluster, tmp_path, monkeypatch, pods):
    def interrupt(run: run_module.KubernetesRun) -> None:
        def is_started() -> bool:
            run.api.list("Pod", run.selector)
            return bool(list(pods.folder.glob("*-trainer-1-*/node/started")))

        wait_for(is_started, "the second pod to work")
        raise KeyboardInterrupt

    monkeypatch.setattr(run_module, "wait", interrupt)
    started = f"import time; open('{NODE_FOLDER}/started', 'w'); time.sleep(600)"
    result = execute(script(started, started), cluster, tmp_path)
    assert (result.status, result.interrupted) == ("killed", True)


def test_horovod_trains_as_an_mpi_job_where_the_operator_is(cluster, tmp_path, api):
    api.has_operator = True
    configuration = asked_for("horovod_torch", 2)
    folder = tmp_path / "runs" / "1"
    operated = replace(cluster, settings=cluster.settings.model_copy(update={"mpi_operator": True}))
    [result] = launcher.execute([submission(configuration, operated, folder)], operated, 100)
    assert (result.status, result.reason) == ("completed", "")
    workers = [node["name"].partition(".")[0] for node in result.nodes]
    assert [name.rpartition("-worker-")[2] for name in workers] == ["0", "1"]
    check_trained_together(folder, configuration, workers)
    assert [manifest["kind"] for manifest in api.created if manifest["kind"] != "Pod"] == ["MPIJob", "Secret"]
