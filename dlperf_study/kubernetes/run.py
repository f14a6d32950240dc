"""One run in a cluster: make its objects, wait for its first pod to end, bring the evidence home, leave nothing."""

import hashlib
import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from dlperf_study.errors import EvidenceError
from dlperf_study.guard.run_folder import begin
from dlperf_study.kubernetes import parcel
from dlperf_study.kubernetes.api import Api, KubernetesError
from dlperf_study.kubernetes.coordinate import Evidence, Order
from dlperf_study.kubernetes.manifests import ENVIRONMENT, ORDER, TOKEN
from dlperf_study.kubernetes.pod_states import End, end_of, has_ended, name_of, waiting_words
from dlperf_study.kubernetes.pods import CONDUCTOR_LABEL, RUN_LABEL, Manifest
from dlperf_study.study.job import JobResult, Outcome

POLL_SECONDS = 1.0
#: How long the API may be out of reach, and how long the first pod may need to notice that another has failed.
PATIENCE_SECONDS = 60.0
#: How long pods may take to go; they have 30 s between the signal and the end.
LEAVING_SECONDS = 90.0
#: What a run takes besides waiting for its pods, for an idle machine and for the training: meeting, packing, ending.
MARGIN_SECONDS = 300.0
DIGEST = "dlperf-study/order"


class Stopped(Exception):
    """The run can't go on, though its first pod has not ended."""

    def __init__(self, end: End) -> None:
        super().__init__(end.reason)
        self.end = end


@dataclass(frozen=True)
class Run:
    """The objects of one run, the owner of the others first, and what its pods are asked to do."""

    api: Api
    objects: Sequence[Manifest]
    order: Order

    @property
    def name(self) -> str:
        """What its objects are called, and by which label they are found."""
        return str(self.objects[0]["metadata"]["labels"][RUN_LABEL])

    @property
    def labels(self) -> str:
        """The selector of its objects."""
        return f"{RUN_LABEL}={self.name}"

    @property
    def deadline_seconds(self) -> float:
        """How long the run may take from its first object on, whatever happens."""
        waiting = 2 * self.order.start_within_seconds + self.order.submission.idle_wait_seconds
        return self.order.timeout_seconds + waiting + MARGIN_SECONDS

    def perform(self) -> JobResult:
        """Do the run, or follow it if an earlier driver has started it; no object of it is left."""
        began = datetime.now(UTC).isoformat()
        try:
            result = self._performed()
        finally:
            left = self._clean_up()
        if left:
            result = replace(result, reason="; ".join(filter(None, (result.reason, left))), failed_task="")
        return replace(result, started=result.started or began)

    def _performed(self) -> JobResult:
        try:
            make(self)
            return _ending(self, wait(self))
        except Stopped as stopped:
            return _ending_without_evidence(stopped.end)
        except KeyboardInterrupt:
            return JobResult(Outcome.KILLED, "interrupted", seconds=None, interrupted=True)
        except (KubernetesError, EvidenceError) as error:
            return JobResult(Outcome.FAILED, str(error), seconds=None)

    def _clean_up(self) -> str:
        """Delete the objects of the run; return in words that it was not possible."""
        try:
            clean_up(self.api, self.labels)
        except KubernetesError as error:
            return f"objects labelled {self.labels} may be left: {error}"
        return ""


def make(run: Run) -> None:
    """Make the objects that are not there yet; those of another order for the same folder go first."""
    digest = hashlib.sha256(run.order.as_json().encode()).hexdigest()
    owner = run.api.find(run.objects[0]["kind"], run.objects[0]["metadata"]["name"])
    if not (owner and _is_alive(owner, digest)):
        clean_up(run.api, run.labels)
        begin(run.order.submission)
        owner = run.api.create(_limited(run.objects[0], run, digest))
    for made in run.objects[1:]:
        if not run.api.find(made["kind"], made["metadata"]["name"]):
            run.api.create(_filled(_limited(made, run, digest), run.order, owner))


def wait(run: Run) -> Manifest:
    """Return the pod that conducts the run once it has ended.

    Raises Stopped when the run can't go on, and KubernetesError when the API stays out of reach.
    """
    watch = _Watch(run)
    while not (ended := watch.ended()):
        time.sleep(POLL_SECONDS)
    return ended


class _Watch:
    """What has been seen of the pods of a run, and since when."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._began = self._answered = time.monotonic()
        self._failing: float | None = None

    def ended(self) -> Manifest | None:
        """Return the pod that conducts, if it has ended by now; raises as ``wait`` does."""
        try:
            pods = self._run.api.list("Pod", self._run.labels)
        except KubernetesError:
            if time.monotonic() - self._answered > PATIENCE_SECONDS:
                raise
            return None
        self._answered = time.monotonic()
        if found := next(
            (pod for pod in pods if has_ended(pod) and CONDUCTOR_LABEL in pod["metadata"]["labels"]), None
        ):
            return found
        self._check_others(pods)
        _check_time(self._run, pods, self._answered - self._began)
        return None

    def _check_others(self, pods: Sequence[Manifest]) -> None:
        """Raise Stopped when another pod has failed, and the one that conducts has had time to notice."""
        failed = next(filter(None, map(end_of, pods)), None)
        self._failing = (self._failing or self._answered) if failed else None
        if failed and self._failing and self._answered - self._failing > PATIENCE_SECONDS:
            raise Stopped(failed)


def clean_up(api: Api, labels: str) -> None:
    """Delete the objects with these labels, and wait until their pods have gone."""
    for kind in ("MPIJob", "Job", "Service", "ConfigMap", "Secret"):
        for found in api.list(kind, labels):
            api.delete(kind, found["metadata"]["name"])
    deadline = time.monotonic() + LEAVING_SECONDS
    while (pods := api.list("Pod", labels)) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    for pod in pods:
        api.delete("Pod", pod["metadata"]["name"])


def _check_time(run: Run, pods: Sequence[Manifest], seconds: float) -> None:
    """Raise Stopped when pods have not started in time, or the run has lasted too long."""
    if seconds > run.deadline_seconds:
        raise Stopped(End(Outcome.TIMEOUT, f"the pods did not end within {seconds:.0f} s"))
    if not pods and not run.api.find(run.objects[0]["kind"], run.objects[0]["metadata"]["name"]):
        raise Stopped(End(Outcome.KILLED, f"somebody deleted job {run.objects[0]['metadata']['name']}"))
    limit = run.order.start_within_seconds
    if seconds > limit and (
        words := waiting_words(pods) or ("" if pods else "no pod has been made: is there a quota?")
    ):
        raise Stopped(End(Outcome.FAILED, f"not started within {limit:.0f} s: {words}"))


def _is_alive(owner: Manifest, digest: str) -> bool:
    """Return whether an object is there to stay, and of the very order that has this digest."""
    metadata = owner["metadata"]
    return metadata.get("annotations", {}).get(DIGEST) == digest and not metadata.get("deletionTimestamp")


def _limited(manifest: Manifest, run: Run, digest: str) -> Manifest:
    """Return a Job with its deadline, and with what tells its order from others; other objects as they are."""
    deadline = {"activeDeadlineSeconds": round(run.deadline_seconds)}
    metadata = manifest["metadata"] | {"annotations": {DIGEST: digest}}
    if manifest["kind"] == "Job":
        return manifest | {"metadata": metadata, "spec": manifest["spec"] | deadline}
    if manifest["kind"] == "MPIJob":
        policy = manifest["spec"]["runPolicy"] | deadline
        return manifest | {"metadata": metadata, "spec": manifest["spec"] | {"runPolicy": policy}}
    return manifest


def _filled(manifest: Manifest, order: Order, owner: Manifest) -> Manifest:
    """Return an object that the first Job owns, with what is only known now."""
    own = {name: owner["metadata"][name] for name in ("name", "uid")}
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], **own}
    filled = manifest | {"metadata": manifest["metadata"] | {"ownerReferences": [reference]}}
    environment = json.dumps(dict(order.submission.environment))
    values = {ORDER: order.as_json(), TOKEN: secrets.token_hex(32), ENVIRONMENT: environment}
    for part in ("data", "stringData"):
        if part in filled:
            filled[part] = {name: values.get(text, text) for name, text in filled[part].items()}
    return filled


def _ending(run: Run, pod: Manifest) -> JobResult:
    """Return how the run ended: what the first pod says, with the files it sends; or how that pod ended itself."""
    log = run.api.log(pod["metadata"]["name"])
    folder = Path(run.order.submission.folder)
    if (text := parcel.text_in(log)) is not None:
        return Evidence.from_text(text).write(folder)
    (folder / f"{name_of(pod)}.log").write_text(log)
    return _ending_without_evidence(end_of(pod) or End(Outcome.FAILED, f"pod {name_of(pod)} brought no evidence"))


def _ending_without_evidence(end: End) -> JobResult:
    return JobResult(end.outcome, end.reason, seconds=None, out_of_memory_kills=int(end.out_of_memory))
