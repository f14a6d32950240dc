"""The rate of one device: that of the job / devices."""

from collections.abc import Iterator
from fractions import Fraction

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.result_cell import SAMPLES_OF_DEVICE, THROUGHPUT, TOKENS, TOKENS_OF_DEVICE, ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity

_EXPLANATIONS = (
    "the devices may not all be counted: some hold parts of one copy of the model",
    "the two may be of different runs",
)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every rate of one device that has a rate of the job at the same point."""
    for of_device_metric, of_job_metric in ((SAMPLES_OF_DEVICE, THROUGHPUT), (TOKENS_OF_DEVICE, TOKENS)):
        for of_device, of_job in results.pairs(of_device_metric, of_job_metric):
            if of_device.world_size:
                yield _compare(of_device, of_job, of_device.world_size)


def _compare(of_device: ResultCell, of_job: ResultCell, devices: int) -> AuditDiagnostic | None:
    low, high = (bound / devices for bound in of_job.printed.bounds(truncated=True))
    if of_device.printed.overlaps(low, high):
        return None
    expected = float(of_job.printed.exact / Fraction(devices))
    computation = f"{of_job.text} / {devices} = {expected:.5g}, printed {of_device.text}"
    if devices > 1 and of_device.printed.overlaps(*of_job.printed.bounds(truncated=True)):
        computation += ": both are of the same scope"
    return AuditDiagnostic(Severity.ERROR, (of_device, of_job), computation, _EXPLANATIONS)


CHECK = Check("Is the rate of a device that of the job / devices?", "rates of one device with one of the job", examine)
