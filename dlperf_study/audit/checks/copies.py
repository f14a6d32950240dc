"""Results that are the same where they can't be: rows that were copied."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

from dlperf_study.audit.checks import AuditDiagnostic, check, texts_phrase
from dlperf_study.audit.result_cell import DEVICE_FLOPS, RATES, STEP, THROUGHPUT, TOKENS, ResultCell
from dlperf_study.audit.results import Results, grouped
from dlperf_study.core.errors import Severity
from dlperf_study.core.wording import counted

#: What rows of another model or device differ in.
_SUBJECT = ("model", "section", "device_name", "parameters")
#: Numbers of at least so many units of their last digit are rarely the same by chance; so many are no chance.
_ENOUGH_UNITS, _ENOUGH_NUMBERS = 100, 2
#: A rate of a job with so many units is the same on more devices only if it was copied.
_MANY_UNITS = 10_000
_CERTAIN_CELLS = 6
_REPEATED = ("the rows may be of one measurement, and its model or devices be named in two ways",)


@check("Do other models and devices have other results?", "models and devices with results", compares=False)
def copied_rows(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every model and device of a source, and for every step of a curve."""
    measured = [cell for cell in results.of(*RATES, DEVICE_FLOPS, STEP) if cell.printed.units >= _ENOUGH_UNITS]
    for cells in grouped(measured, lambda cell: cell.get("source")).values():
        subjects = grouped(cells, lambda cell: tuple(map(cell.get, _SUBJECT)))
        if len(subjects) > 1:
            yield from _compare_subjects(list(subjects.values()))
    of_jobs = [cell for cell in results.of(THROUGHPUT, TOKENS) if cell.printed.units >= _MANY_UNITS and cell.world_size]
    for cells in grouped(of_jobs, lambda cell: (cell.table, cell.metric)).values():
        if len({cell.world_size for cell in cells}) > 1:
            for same in grouped(cells, lambda cell: cell.printed.exact).values():
                sizes = {cell.world_size: cell for cell in same}
                yield _describe(list(sizes.values())[:2]) if len(sizes) > 1 else None


def _compare_subjects(subjects: Sequence[list[ResultCell]]) -> Iterator[AuditDiagnostic | None]:
    """Yield a diagnostic for every two subjects with the same numbers, and None for all others."""
    rows: dict[object, list[tuple[int, ResultCell]]] = defaultdict(list)
    for index, cells in enumerate(subjects):
        for cell in cells:
            rows[cell.metric, cell.printed.exact].append((index, cell))
    shared: dict[tuple[int, int], list[ResultCell]] = defaultdict(list)
    for same in rows.values():
        for (first, cell), (second, copy) in combinations(same, 2):
            if first != second:
                shared[first, second] += [cell, copy]
    copied = set()
    for (first, second), cells in shared.items():
        smaller = min(subjects[first], subjects[second], key=len)
        repeated = {cell.printed.exact for cell in cells}
        if len(repeated) >= _ENOUGH_NUMBERS and 2 * len(repeated) >= len({cell.printed.exact for cell in smaller}):
            copied |= {first, second}
            yield _describe(list(dict.fromkeys(cells)))
    yield from [None] * (len(subjects) - len(copied))


def _describe(cells: Sequence[ResultCell]) -> AuditDiagnostic:
    """Return a diagnostic for cells that come in pairs, each the same number; an error for three and more."""
    first, second = (" ".join(str(name) for name in _named(cell) if name) for cell in cells[:2])
    computation = f"{texts_phrase(cells[::2])}: the same for {first} and for {second}"
    severity = Severity.ERROR if len(cells) >= _CERTAIN_CELLS else Severity.WARNING
    return AuditDiagnostic(severity, tuple(cells), computation, _REPEATED)


def _named(cell: ResultCell) -> tuple[object, ...]:
    devices = counted(cell.world_size, "device") if cell.world_size else ""
    return (*map(cell.get, _SUBJECT[:-1]), devices)
