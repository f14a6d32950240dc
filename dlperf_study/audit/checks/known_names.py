"""Networks and devices without known FLOPs or peak: no check can compare their rates with a peak."""

from collections.abc import Iterator

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.limits import names_network_and_device, unknown_names
from dlperf_study.audit.result_cell import THROUGHPUT, ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity
from dlperf_study.wording import counted


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield None for every rate whose network and device are known, one diagnostic for all other rates of a source."""
    rates_by_source: dict[str, list[ResultCell]] = {}
    for rate in results.of(THROUGHPUT):
        if not names_network_and_device(rate):
            continue
        if unknown_names(rate):
            rates_by_source.setdefault(str(rate.get("source")), []).append(rate)
        else:
            yield None
    for source, rates in rates_by_source.items():
        names: dict[str, None] = {}
        for rate in rates:
            names |= dict.fromkeys(unknown_names(rate))
        rates_phrase = f"{counted(len(rates), 'rate')} {'is' if len(rates) == 1 else 'are'}"
        reason = f"the tables of networks and devices do not contain {', '.join(names)}"
        computation = f"{source}: {rates_phrase} not compared with a peak: {reason}"
        yield AuditDiagnostic(Severity.NOTE, tuple(rates), computation)


CHECK = Check("Are the FLOPs of networks and the peaks of devices known?", "rates with network and device", examine)
