"""What a run in Kubernetes needs: the API, permissions, and images that start and have the right code."""

import json
import time
import uuid
from collections.abc import Iterator

from dlperf_study.check.result import CheckResult, missing, ok, queue_seconds
from dlperf_study.cluster.cluster import Cluster
from dlperf_study.cluster.software import measuring_code, training_libraries
from dlperf_study.errors import DlperfStudyError
from dlperf_study.kubernetes.api import Api, KubernetesError
from dlperf_study.kubernetes.manifests import check_job
from dlperf_study.kubernetes.pod_status import failure_of, has_ended, waiting_reasons
from dlperf_study.kubernetes.pods import RUN_LABEL, Manifest
from dlperf_study.kubernetes.run import POLL_SECONDS, delete_objects
from dlperf_study.wording import last_line

#: What a run does: verb, kind, subresource.
PERMISSIONS = (
    *((verb, kind, "") for kind in ("Job", "Service", "Secret") for verb in ("create", "list", "delete")),
    *(("list", "Pod", ""), ("delete", "Pod", ""), ("get", "Pod", "log")),
)


def check_kubernetes(cluster: Cluster) -> Iterator[CheckResult]:
    """Yield the results; every image is started once, on a node that could run a trainer."""
    try:
        api = Api(cluster.settings)
        yield ok("API", f"Kubernetes {api.version()}")
        yield (permissions := _check_permissions(api))
    except DlperfStudyError as error:
        yield missing("API", str(error), "name kubeconfig and context in the cluster file, and try: kubectl get pods")
        return
    if permissions.remedy:
        return
    if cluster.settings.mpi_operator:
        yield _check_operator(api)
    for image in sorted(set(cluster.settings.images.values())):
        yield _check_image(api, cluster, image)


def _check_permissions(api: Api) -> CheckResult:
    forbidden = []
    for verb, kind, subresource in PERMISSIONS:
        if not api.is_allowed(verb, kind, subresource):
            forbidden.append(f"{verb} {kind}/{subresource}" if subresource else f"{verb} {kind}")
    if forbidden:
        remedy = f"ask for a role in namespace {api.namespace} that allows it"
        return missing("permissions", f"you may not {', '.join(forbidden)}", remedy)
    return ok("permissions", f"all that a run needs, in namespace {api.namespace}")


def _check_operator(api: Api) -> CheckResult:
    if api.has_kind("MPIJob"):
        return ok("mpi-operator", "MPIJob v2beta1 is there")
    return missing("mpi-operator", "no MPIJob v2beta1", "install the mpi-operator, or set mpi_operator: false")


def _check_image(api: Api, cluster: Cluster, image: str) -> CheckResult:
    """Start an image, and compare its code and libraries, which it prints."""
    name = f"dlperf-check-{uuid.uuid4().hex[:10]}"
    selector = f"{RUN_LABEL}={name}"
    subject = f"image {image}"
    try:
        api.create(check_job(name, cluster, image))
        output = last_line(_pod_log(api, selector, queue_seconds(cluster.settings.start_within_seconds)))
    except KubernetesError as error:
        return missing(subject, str(error), "see kubectl describe pod, and images/ for how to build it")
    finally:
        delete_objects(api, selector)
    try:
        runtime = json.loads(output)
    except ValueError:
        return missing(subject, f"it prints: {output or 'nothing'}", "build it from images/")
    if runtime["code"] != measuring_code():
        return missing(subject, "it has other measuring code than this checkout", "build it again: images/")
    libraries = [f"{name} {version}" for name, version in training_libraries(runtime["software"]).items()]
    return ok(subject, ", ".join(libraries) or "no framework's library")


def _pod_log(api: Api, selector: str, seconds: float) -> str:
    """Return what the pod printed; raises KubernetesError when it does not start or fails."""
    deadline = time.monotonic() + seconds
    pods: list[Manifest] = []
    while time.monotonic() < deadline:
        pods = api.list("Pod", selector)
        for pod in filter(has_ended, pods):
            log = api.log(pod["metadata"]["name"])
            if failure := failure_of(pod):
                raise KubernetesError(f"{failure.reason}: {last_line(log) or 'nothing'}")
            return log
        time.sleep(POLL_SECONDS)
    reasons = waiting_reasons(pods) or "it runs, or was never created"
    raise KubernetesError(f"not done within {seconds:.0f} s: {reasons}")
