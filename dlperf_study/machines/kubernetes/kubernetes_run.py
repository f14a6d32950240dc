"""One run in a cluster: create its objects, wait for its first pod to end, read the evidence, leave no object."""

import copy
import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from dlperf_study.core.errors import RecordError
from dlperf_study.core.user_commands import require_module
from dlperf_study.machines.kubernetes import pods
from dlperf_study.machines.kubernetes.api import FORBIDDEN, Api, KubernetesError
from dlperf_study.machines.kubernetes.coordinator_pod import RunRequest
from dlperf_study.machines.kubernetes.manifests import COORDINATOR_LABEL, RUN_LABEL, Manifest
from dlperf_study.machines.node_agent.run_folder import begin
from dlperf_study.study.job import JobResult, RunStatus

POLL_SECONDS = 1.0
#: How long the API may be out of reach, and how long the first pod may need to notice that another has failed.
PATIENCE_SECONDS = 60.0
#: How long pods may take to go; they have 30 s between the signal and the end.
LEAVING_SECONDS = 90.0
#: What a run takes besides waiting for its pods, for an idle machine and for the training: meeting, packing, ending.
MARGIN_SECONDS = 300.0
#: From how long before now the certificate of a run counts, for clocks of nodes that are late, and until how long after
#: now: a run may wait in a queue.
VALID_BEFORE, VALID_AFTER = timedelta(days=30), timedelta(days=365)
#: Tells the request of one run from that of another for the same folder.
DIGEST_ANNOTATION = "dlperf-study/request"


class PodsFailed(Exception):
    """The run can't go on, although its first pod has not ended."""

    def __init__(self, failure: pods.PodFailure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


@dataclass(frozen=True)
class KubernetesRun:
    """The objects of one run, its owner first, and its request."""

    api: Api
    objects: Sequence[Manifest]
    request: RunRequest

    @property
    def selector(self) -> str:
        """The label of its objects."""
        return f"{RUN_LABEL}={self.objects[0]['metadata']['labels'][RUN_LABEL]}"

    @property
    def digest(self) -> str:
        """The digest of its request."""
        return hashlib.sha256(self.request.as_json().encode()).hexdigest()

    @property
    def deadline_seconds(self) -> float:
        """How long the run may take in all."""
        waiting = 2 * self.request.start_within_seconds + self.request.submission.preparing_seconds
        return self.request.timeout_seconds + waiting + MARGIN_SECONDS

    def execute(self) -> JobResult:
        """Do the run, or follow it; no object is left."""
        started, leftovers = datetime.now(UTC).isoformat(), ""
        try:
            result = self._result()
        finally:
            try:
                delete_objects(self.api, self.selector)
            except KubernetesError as error:
                leftovers = f"objects labelled {self.selector} may be left: {error}"
        if leftovers:
            reason = "; ".join(filter(None, (result.reason, leftovers)))
            result = replace(result, reason=reason, failed_task="")
        return replace(result, started=result.started or started)

    def _result(self) -> JobResult:
        try:
            create_objects(self)
            return _read_evidence(self, wait(self))
        except PodsFailed as stopped:
            return stopped.failure.as_result()
        except KeyboardInterrupt:
            return JobResult(RunStatus.KILLED, "interrupted", seconds=None, interrupted=True)
        except (KubernetesError, RecordError) as error:
            return JobResult(RunStatus.FAILED, str(error), seconds=None)


def create_objects(run: KubernetesRun) -> None:
    """Create the missing objects, without those of other requests."""
    first, *others = run.objects
    owner = run.api.find(first["kind"], first["metadata"]["name"])
    metadata = owner["metadata"] if owner else {}
    is_same_request = metadata.get("annotations", {}).get(DIGEST_ANNOTATION) == run.digest
    if not is_same_request or metadata.get("deletionTimestamp"):
        delete_objects(run.api, run.selector)
        begin(run.request.submission)
        owner = run.api.create(_complete(first, run))
    for manifest in others:
        if not run.api.find(manifest["kind"], manifest["metadata"]["name"]):
            run.api.create(_complete(manifest, run, owner))


def _complete(manifest: Manifest, run: KubernetesRun, owner: Manifest | None = None) -> Manifest:
    """Return a manifest with the values of the start."""
    complete = copy.deepcopy(manifest)
    kind, metadata = complete["kind"], complete["metadata"]
    if owner:
        configuration_id = {name: owner["metadata"][name] for name in ("name", "uid")}
        metadata["ownerReferences"] = [{"apiVersion": owner["apiVersion"], "kind": owner["kind"], **configuration_id}]
    if kind in ("Job", "MPIJob"):
        metadata["annotations"] = {DIGEST_ANNOTATION: run.digest}
        policy = complete["spec"] if kind == "Job" else complete["spec"]["runPolicy"]
        policy["activeDeadlineSeconds"] = round(run.deadline_seconds)
    if kind == "Secret":
        complete["stringData"] = {
            "certificate.pem": run_certificate(),
            "request.json": run.request.as_json(),
            "environment.json": json.dumps(dict(run.request.submission.cluster.environment)),
        }
    return complete


def run_certificate() -> str:
    """Return a new private key and its certificate, in PEM."""
    # By it the pods of a run know each other: whoever has both is of the run.
    require_module("cryptography")
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a run of dlperf-study")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - VALID_BEFORE)
        .not_valid_after(now + VALID_AFTER)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, SHA256())
    )
    private_key = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return (private_key + certificate.public_bytes(Encoding.PEM)).decode()


def wait(run: KubernetesRun) -> Manifest:
    """Return the pod that coordinates the run once it has ended; raises PodsFailed."""
    start = time.monotonic()
    first_failure: float | None = None
    while True:
        run_pods = _list_pods(run)
        now = time.monotonic()
        for pod in run_pods:
            if pods.has_ended(pod) and COORDINATOR_LABEL in pod["metadata"]["labels"]:
                return pod
        failures = list(filter(None, map(pods.pod_failure, run_pods)))
        first_failure = (first_failure or now) if failures else None
        if first_failure and now - first_failure > PATIENCE_SECONDS:
            raise PodsFailed(failures[0])
        _check_progress(run, run_pods, now - start)
        time.sleep(POLL_SECONDS)


def _list_pods(run: KubernetesRun) -> list[Manifest]:
    """Return the pods of a run; wait for the API."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return run.api.list("Pod", run.selector)
        except KubernetesError:
            if time.monotonic() > deadline:
                raise
        time.sleep(POLL_SECONDS)


def _check_progress(run: KubernetesRun, run_pods: Sequence[Manifest], seconds: float) -> None:
    """Raise PodsFailed for a run that is late or deleted."""
    if seconds > run.deadline_seconds:
        raise PodsFailed(pods.PodFailure(RunStatus.TIMEOUT, f"the pods did not end within {seconds:.0f} s"))
    owner = run.objects[0]
    name = owner["metadata"]["name"]
    if not run_pods and not run.api.find(owner["kind"], name):
        raise PodsFailed(pods.PodFailure(RunStatus.KILLED, f"job {name} was deleted from outside"))
    limit = run.request.start_within_seconds
    if seconds > limit:
        reasons = (
            pods.waiting_reasons(run_pods) if run_pods else "no pod has been created; check the quota of the namespace"
        )
        if reasons:
            raise PodsFailed(pods.PodFailure(RunStatus.FAILED, f"not started within {limit:.0f} s: {reasons}"))


def _read_evidence(run: KubernetesRun, pod: Manifest) -> JobResult:
    """Return the result in the log of the first pod."""
    log = run.api.log(pod["metadata"]["name"])
    folder = Path(run.request.submission.folder)
    if result := pods.extract_evidence(log, folder):
        return result
    title = pods.pod_title(pod)
    (folder / f"{title}.log").write_text(log)
    failure = pods.pod_failure(pod) or pods.PodFailure(RunStatus.FAILED, f"pod {title} printed no run records")
    return failure.as_result()


def delete_objects(api: Api, selector: str) -> None:
    """Delete the objects with these labels, and wait."""
    for kind in ("MPIJob", "Job", "Service", "Secret"):
        try:
            manifests = api.list(kind, selector)
        except KubernetesError as error:
            # Where the role does not allow any MPIJob, none was made.
            if kind != "MPIJob" or error.status != FORBIDDEN:
                raise
            continue
        for manifest in manifests:
            api.delete(kind, manifest["metadata"]["name"])
    deadline = time.monotonic() + LEAVING_SECONDS
    while (left := api.list("Pod", selector)) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    for pod in left:
        api.delete("Pod", pod["metadata"]["name"])
    if left:
        names = ", ".join(pod["metadata"]["name"] for pod in left)
        raise KubernetesError(f"{LEAVING_SECONDS:g} s after their jobs were deleted these pods have not ended: {names}")
