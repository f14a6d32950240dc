"""What a run in Kubernetes needs: the API, permissions, and images that can be started with what they hold."""

import json
import time
import uuid
from collections.abc import Iterator

from dlperf_study.check.result import CheckResult, holds, missing
from dlperf_study.cluster.cluster import Cluster
from dlperf_study.cluster.software import measuring_code, training_libraries
from dlperf_study.errors import DlperfStudyError
from dlperf_study.guard.probes import queue_seconds
from dlperf_study.kubernetes.api import Api, KubernetesError
from dlperf_study.kubernetes.manifests import check_job
from dlperf_study.kubernetes.pod_states import end_of, has_ended, waiting_words
from dlperf_study.kubernetes.pods import RUN_LABEL, Manifest
from dlperf_study.kubernetes.run import POLL_SECONDS, clean_up
from dlperf_study.wording import last_line

#: What a run does: verb, resource, part of the resource.
PERMISSIONS = (
    *((verb, kind, "") for kind in ("Job", "Service", "ConfigMap", "Secret") for verb in ("create", "list", "delete")),
    *(("list", "Pod", ""), ("delete", "Pod", ""), ("get", "Pod", "log")),
)


def check_kubernetes(cluster: Cluster) -> Iterator[CheckResult]:
    """Yield what was found; every image is started once, on a node as a trainer gets it."""
    try:
        api = Api(cluster.kubernetes)
        yield holds("API", f"Kubernetes {api.version()}")
        yield (permissions := _permissions(api))
    except DlperfStudyError as error:
        yield missing("API", str(error), "name kubeconfig and context in the cluster file, and try: kubectl get pods")
        return
    if permissions.remedy:
        return
    if cluster.kubernetes.mpi_operator:
        yield _operator(api)
    for image in sorted(set(cluster.kubernetes.images.values())):
        yield _image(api, cluster, image)


def _permissions(api: Api) -> CheckResult:
    lacking = [
        f"{verb} {kind}{f'/{part}' if part else ''}"
        for verb, kind, part in PERMISSIONS
        if not api.may(verb, kind, part)
    ]
    if lacking:
        remedy = f"ask for a role in namespace {api.namespace} that allows it"
        return missing("permissions", f"you may not {', '.join(lacking)}", remedy)
    return holds("permissions", f"all that a run needs, in namespace {api.namespace}")


def _operator(api: Api) -> CheckResult:
    if api.knows("MPIJob"):
        return holds("mpi-operator", "MPIJob v2beta1 is there")
    return missing("mpi-operator", "no MPIJob v2beta1", "install the mpi-operator, or say mpi_operator: false")


def _image(api: Api, cluster: Cluster, image: str) -> CheckResult:
    """Return what an image holds, as it says when started."""
    name = f"dlperf-check-{uuid.uuid4().hex[:10]}"
    subject = f"image {image}"
    try:
        api.create(check_job(name, cluster, image))
        return _said(subject, _log(api, f"{RUN_LABEL}={name}", queue_seconds(cluster)))
    except KubernetesError as error:
        return missing(subject, str(error), "see kubectl describe pod, and images/ for how to build it")
    finally:
        clean_up(api, f"{RUN_LABEL}={name}")


def _log(api: Api, labels: str, seconds: float) -> str:
    """Return what the pod printed; raises KubernetesError when it does not start or ends badly."""
    deadline = time.monotonic() + seconds
    pods: list[Manifest] = []
    while time.monotonic() < deadline:
        pods = api.list("Pod", labels)
        for pod in filter(has_ended, pods):
            if end := end_of(pod):
                raise KubernetesError(f"{end.reason}: {_last_words(api.log(pod['metadata']['name']))}")
            return api.log(pod["metadata"]["name"])
        time.sleep(POLL_SECONDS)
    raise KubernetesError(f"not done within {seconds:.0f} s: {waiting_words(pods) or 'it runs, or was never made'}")


def _said(subject: str, log: str) -> CheckResult:
    try:
        told = json.loads(last_line(log))
    except ValueError:
        return missing(subject, f"it says: {_last_words(log)}", "build it from images/")
    if told["code"] != measuring_code():
        return missing(subject, "it holds other measuring code than this checkout", "build it again: images/")
    found = [f"{name} {version}" for name, version in training_libraries(told["software"]).items()]
    return holds(subject, ", ".join(found) or "no framework's library")


def _last_words(log: str) -> str:
    return last_line(log) or "nothing"
