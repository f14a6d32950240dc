"""Kubernetes: a Job per node and role, or an MPIJob for Horovod where its operator is; no shared folder.

One pod coordinates the node agents in the others, and prints the evidence into its log.
"""

import json
import os
import time
import uuid
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import yaml

from dlperf_study.core import code_identity, wording
from dlperf_study.core.errors import DlperfStudyError, MissingPackageError, RunError, StudyFileError
from dlperf_study.machines.check import CheckResult, missing, ok, queue_seconds
from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.cluster.software import library_versions, query, software
from dlperf_study.machines.kubernetes import manifests
from dlperf_study.machines.kubernetes.api import Api, KubernetesError, KubernetesSettings
from dlperf_study.machines.kubernetes.coordinator_pod import RunRequest
from dlperf_study.machines.kubernetes.kubernetes_run import POLL_SECONDS, KubernetesRun, delete_objects
from dlperf_study.machines.kubernetes.pods import has_ended, pod_failure, waiting_reasons
from dlperf_study.machines.launchers._base import Launcher, Queue
from dlperf_study.machines.node_agent.run_folder import encoded
from dlperf_study.machines.node_agent.submission import Node, Submission, fill, render_submission
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.gpu_support import GpuSupport
from dlperf_study.study.job import Job, JobResult, ProgramFacts

MANIFESTS = "kubernetes.yaml"
#: Of the 1 MiB of a Secret, what the packed files may take: the rest is for the submission and the environment.
MOST_ARCHIVE_CHARACTERS = 700 << 10
#: What a run does: with objects of these kinds, and with pods (verb, kind, subresource).
_VERBS, _KINDS = ("create", "list", "delete"), ("Job", "Service", "Secret")
_OF_PODS = (("list", "Pod", ""), ("delete", "Pod", ""), ("get", "Pod", "log"))


def render(job: Job, cluster: Cluster, folder: Path) -> Submission:
    """Return the commands of a job and the manifests; raises StudyFileError."""
    image = LAUNCHER.image(cluster, job.framework)
    if not image:
        raise StudyFileError(f"cluster {cluster.name}: kubernetes.images has none for {job.framework}, and no default")
    pods = manifests.required_pods(job)
    node_folder = f"{manifests.NODE_FOLDER}/run"
    submission = render_submission("kubernetes", _assign_to_pods(job, pods), cluster, folder, node_folder)
    # The operator makes pods of one kind only: none for what serves the ranks.
    has_servers = any(pod.role is manifests.PodRole.SERVER for pod in pods)
    if cluster.settings.mpi_operator and job.starts_other_nodes and len(pods) > 1 and not has_servers:
        objects = manifests.mpi_manifests(submission, job.nodes, cluster, image)
    else:
        objects = manifests.run_manifests(submission, pods, cluster, image)
    return replace(submission, files={MANIFESTS: manifests.as_yaml(objects)})


def execute(submissions: Sequence[Submission], cluster: Cluster, timeout_seconds: float) -> Generator[JobResult]:
    """Run submissions one after another; leave no object behind."""
    # A run that an earlier controller started and did not see the end of is followed.
    api = Api(cluster.settings)
    for submission in submissions:
        # Exactly the manifests that the evidence shows are created.
        objects = list(yaml.safe_load_all(submission.files[MANIFESTS]))
        inherited = submission.job.variables.travelling(os.environ, submission.pass_environment)
        environment = inherited | dict(submission.cluster.environment)
        request = RunRequest(
            submission.changed_cluster(environment=environment),
            pods=manifests.pod_names(objects),
            separate_coordinator=objects[0]["kind"] == "MPIJob",
            versions=software(submission.job.packages),
            timeout_seconds=timeout_seconds,
            start_within_seconds=cluster.settings.start_within_seconds,
            archive=_archive(submission),
        )
        yield KubernetesRun(api, objects, request).execute()


def _archive(submission: Submission) -> str:
    """Return packed files in base64; raises RunError if too large."""
    file = submission.job.archive
    archive = encoded(Path(file)) if file else ""
    if len(archive) > MOST_ARCHIVE_CHARACTERS:
        raise RunError(
            f"{file}: {len(archive) >> 10} KiB of packed files, and a Secret, by which pods get them, "
            f"holds at most {MOST_ARCHIVE_CHARACTERS >> 10} KiB; move data out of the folder"
        )
    return archive


def nodes(cluster: Cluster) -> tuple[Node, ...]:
    """Return nothing: a pod can't be reached before there is a run."""
    return ()


def queue(cluster: Cluster) -> Queue:
    """Return the limits of the queue."""
    settings: KubernetesSettings = cluster.settings
    return Queue(settings.start_within_seconds)


def images(cluster: Cluster) -> Mapping[str, str]:
    """Return the image of each framework."""
    settings: KubernetesSettings = cluster.settings
    return settings.images


def cpu_limit_obstacle(cluster: Cluster, configuration: Configuration) -> str:
    """Return why a rank can't have its limit in a pod."""
    limit, given = configuration.cpu_limit, cluster.settings.resources.get("cpu", "")
    if configuration.devices_per_node > 1:
        return f"cpu_limit {limit:g}: a pod has one limit for all its ranks; it needs devices_per_node of 1"
    if given not in (f"{limit:g}", f"{limit * 1000:g}m"):
        actual = f"it has {given!r}" if given else "it has none"
        return f'cpu_limit {limit:g} needs resources: {{cpu: "{limit:g}"}} in kubernetes of the cluster file; {actual}'
    return ""


def cancel(folder: Path, cluster: Cluster) -> None:
    """Delete what a killed controller left of a configuration."""
    label = manifests.configuration_label(str(folder))
    delete_objects(Api(cluster.settings), f"{manifests.CONFIGURATION_LABEL}={label}")


def _assign_to_pods(job: Job, pods: Sequence[manifests.Pod]) -> Job:
    """Return a job whose nodes are pods."""
    indices = {(pod.role.value, pod.node): index for index, pod in enumerate(pods)}
    values = {}
    for index, pod in enumerate(pods):
        if pod.role is manifests.PodRole.SERVER:
            values[f"server_host_{pod.node}"] = f"{{host_{index}}}"
    tasks = []
    for task in job.tasks:
        index = indices[task.role.value, task.node]
        task_values = values | {f"interface_{task.node}": f"{{interface_{index}}}"}
        environment = {name: fill(value, task_values) for name, value in task.environment.items()}
        argv = tuple(fill(argument, task_values) for argument in task.argv)
        tasks.append(replace(task, node=index, argv=argv, environment=environment))
    return replace(job, nodes=len(pods), tasks=tuple(tasks))


def check(cluster: Cluster, programs: ProgramFacts) -> Iterator[CheckResult]:
    """Yield the results; every image is started once."""
    try:
        api = Api(cluster.settings)
        yield ok("API", f"Kubernetes {api.version()}")
        yield (permissions := _check_permissions(api, cluster.settings.mpi_operator))
    except MissingPackageError:
        raise
    except DlperfStudyError as error:
        yield missing("API", str(error), "name kubeconfig and context in the cluster file, and try: kubectl get pods")
        return
    if permissions.remedy:
        return
    if cluster.settings.mpi_operator and api.has_kind("MPIJob"):
        yield ok("mpi-operator", "MPIJob v2beta1 is there")
    elif cluster.settings.mpi_operator:
        yield missing("mpi-operator", "no MPIJob v2beta1", "install the mpi-operator, or set mpi_operator: false")
    for image in sorted(set(cluster.settings.images.values())):
        yield _check_image(api, cluster, image, programs)


def _check_permissions(api: Api, makes_mpi_jobs: bool) -> CheckResult:
    kinds = (*_KINDS, *(["MPIJob"] if makes_mpi_jobs else []))
    forbidden = []
    for verb, kind, subresource in (*((verb, kind, "") for kind in kinds for verb in _VERBS), *_OF_PODS):
        if not api.is_allowed(verb, kind, subresource):
            forbidden.append(f"{verb} {kind}/{subresource}" if subresource else f"{verb} {kind}")
    if forbidden:
        remedy = f"ask for a role in namespace {api.namespace} that allows it"
        return missing("permissions", f"you may not {', '.join(forbidden)}", remedy)
    return ok("permissions", f"all that a run needs, in namespace {api.namespace}")


def _check_image(api: Api, cluster: Cluster, image: str, programs: ProgramFacts) -> CheckResult:
    """Start an image, and compare its code and libraries, which it prints."""
    name = f"dlperf-check-{uuid.uuid4().hex[:10]}"
    subject = f"image {image}"
    job = manifests.check_job(name, cluster, image, facts_query(programs, cluster.device))
    try:
        output = _printed(api, job, name, queue_seconds(cluster.settings.start_within_seconds))
    except KubernetesError as error:
        return missing(subject, str(error), "see kubectl describe pod, and images/ for how to build it")
    try:
        runtime = json.loads(output)
    except ValueError:
        return missing(subject, f"it prints: {output or 'nothing'}", "build it from images/")
    if runtime["code"] != code_identity.code_digest(code_identity.check_roots(cluster.launcher)):
        return missing(subject, "it has other benchmark code than this checkout", "build it again: images/")
    versions = library_versions(programs.libraries, runtime["software"])
    libraries = [f"{name} {version}" for name, version in versions.items()]
    if cluster.device == "gpu" and (obstacles := _gpu_obstacles(cluster, programs, runtime["gpu_support"])):
        return missing(subject, "; ".join(obstacles), "see docs/gpu.md to install a build for GPUs")
    return ok(subject, ", ".join(libraries) or "no framework's library")


def facts_query(programs: ProgramFacts, device: str) -> list[str]:
    """Return the arguments with which the Python of an image prints its facts."""
    arguments = query(programs.packages, code_identity.check_roots("kubernetes"))
    if device == "gpu":
        questions = {name: asdict(question) for name, question in programs.gpu_questions.items()}
        arguments.append(f"--questions={json.dumps(questions)}")
    return arguments


def _gpu_obstacles(cluster: Cluster, programs: ProgramFacts, answers: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return why no framework can train on a pod's GPUs."""
    obstacles = []
    for name, answer in answers.items():
        if "error" in answer:
            obstacles.append(f"{name}: {answer['error']}")
            continue
        supports, question = {"the pod": GpuSupport.of(answer)}, programs.gpu_questions[name]
        contradictions = list(question.contradictions(supports, cluster.devices_per_node, cluster.device_name))
        if not contradictions:
            return []
        obstacles += contradictions[:1]
    return list(dict.fromkeys(obstacles)) or ["it has no library that trains on GPUs"]


def _printed(api: Api, job: manifests.Manifest, name: str, seconds: float) -> str:
    """Return the last line of a job's pod; delete the job."""
    selector = f"{manifests.RUN_LABEL}={name}"
    try:
        api.create(job)
        return wording.last_line(_pod_log(api, selector, seconds))
    finally:
        delete_objects(api, selector)


def _pod_log(api: Api, selector: str, seconds: float) -> str:
    """Return the log of a pod; raises KubernetesError if it fails."""
    deadline = time.monotonic() + seconds
    pods: list[manifests.Manifest] = []
    while time.monotonic() < deadline:
        pods = api.list("Pod", selector)
        for pod in filter(has_ended, pods):
            log = api.log(pod["metadata"]["name"])
            if failure := pod_failure(pod):
                raise KubernetesError(f"{failure.reason}: {wording.last_line(log) or 'nothing'}")
            return log
        time.sleep(POLL_SECONDS)
    reasons = waiting_reasons(pods) or "it runs, or was never created"
    raise KubernetesError(f"not done within {seconds:.0f} s: {reasons}")


LAUNCHER = Launcher(
    *("kubernetes", render, execute, nodes, check),
    cancel=cancel,
    queue=queue,
    images=images,
    cpu_limit_obstacle=cpu_limit_obstacle,
    settings=KubernetesSettings,
    shared_files=False,
    # In base64 it is a third longer.
    most_archive_bytes=MOST_ARCHIVE_CHARACTERS * 3 // 4,
    archive_remedy="put the script into the image, and only files that differ between studies into program.folder",
)
