"""Language models: degrees of parallelism, batches and tokens of a step."""

import math
from collections.abc import Callable, Iterator, Sequence

from dlperf_study.audit import quantities
from dlperf_study.audit.checks import AuditDiagnostic, check
from dlperf_study.audit.result_cell import ResultCell
from dlperf_study.audit.results import Results, grouped
from dlperf_study.core.errors import Severity
from dlperf_study.core.wording import counted

_MOST_ROWS = 3
#: ``4M tokens`` may be 2^22.
_NEAR_MILLIONS = 0.1
_OTHER_DEGREES = ("a degree may be missing, or one may be part of another, such as experts or shards within copies",)
_OTHER_BATCH = ("the micro-batch may count all devices, or the global batch may be limited by the size of the data",)
_LONG_SAMPLES = ("one of the numbers may be rounded", "the sequence length may belong to another phase of training")
#: By this factor no rounding and no cut-off batch explains a difference.
_LARGE_FACTOR = 1.5
#: Returns what contradicts what in a row, and by which factor; empty if nothing does, None if it is not printed.
Comparison = Callable[[ResultCell], tuple[str, float] | None]


@check("Do the degrees of parallelism fit the devices?", "rows with degrees and devices", compares=False)
def degrees(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Compare the degrees of parallelism of each row with its devices."""
    return _examine_rows(results, _compare_degrees, _OTHER_DEGREES)


@check(
    "Is a global batch micro-batch × accumulation × copies?", "rows with micro-batch and accumulation", compares=False
)
def accumulations(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every row that prints all of them."""
    return _examine_rows(results, _compare_accumulation, _OTHER_BATCH)


@check("Are the tokens of a step at most samples × sequence length?", "rows with all three", compares=False)
def step_tokens(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every row that prints all three numbers."""
    return _examine_rows(results, _compare_tokens, _LONG_SAMPLES)


def _examine_rows(
    results: Results, compare: Comparison, explanations: tuple[str, ...]
) -> Iterator[AuditDiagnostic | None]:
    """Yield None for consistent rows, and one diagnostic per table and severity."""
    rows = grouped(results.cells, lambda cell: (*cell.table, cell.get("row"), cell.get("configuration_id")))
    contradictions: dict[tuple[Severity, object], list[tuple[ResultCell, str]]] = {}
    for cell in (cells[0] for cells in rows.values()):
        phrase, factor = compare(cell) or (None, 1)
        severity = Severity.ERROR if factor >= _LARGE_FACTOR else Severity.WARNING
        if phrase:
            contradictions.setdefault((severity, cell.table), []).append((cell, phrase))
        elif phrase is not None:
            yield None
    for (severity, _), found_in_table in contradictions.items():
        cells, phrases = zip(*found_in_table, strict=True)
        yield AuditDiagnostic(severity, cells, rows_phrase(phrases), explanations)


def rows_phrase(phrases: Sequence[str]) -> str:
    """Return the first phrases, and how many rows there are."""
    shown = "; ".join(phrases[:_MOST_ROWS])
    if len(phrases) <= _MOST_ROWS:
        return shown
    return f"{counted(len(phrases), 'row')}: {shown}; …"


def _degree(cell: ResultCell, name: str) -> int | None:
    """Return a degree of parallelism; None if missing or no number."""
    printed = str(cell.by_folded_name.get(name, ""))
    if printed.isdecimal() and int(printed) > 0:
        return int(printed)
    return None


def copy_devices(cell: ResultCell) -> int:
    """Return the number of devices per model copy."""
    return math.prod(_degree(cell, name) or 1 for name in quantities.SPLITTING)


def _compare_degrees(cell: ResultCell) -> tuple[str, float] | None:
    printed = {name: degree for name in (*quantities.SPLITTING, quantities.COPIES) if (degree := _degree(cell, name))}
    if not cell.world_size or not printed:
        return None
    product = math.prod(printed.values())
    # Copies whose state is in shards need not be counted as copies.
    if cell.world_size % product == 0:
        return "", 1
    formula = " × ".join(f"{name} {degree}" for name, degree in printed.items())
    return f"{formula} = {product}, on {counted(cell.world_size, 'device')}", product / cell.world_size


def _samples_of_step(cell: ResultCell) -> tuple[str, float]:
    """Return micro-batch × accumulation × copies as text and product."""
    passes, copies = (
        cell.get(quantities.ACCUMULATION),
        _degree(cell, quantities.COPIES) or (cell.world_size or 0) // copy_devices(cell),
    )
    micro_batch = cell.get(quantities.MICRO_BATCH) or cell.get("batch_per_device")
    if not (micro_batch and passes and copies):
        return "", 0
    return f"{micro_batch:g} × {passes:g} × {copies}", micro_batch * passes * copies


def _compare_accumulation(cell: ResultCell) -> tuple[str, float] | None:
    (formula, product), batch = _samples_of_step(cell), cell.get("global_batch")
    if not (product and batch):
        return None
    # The last pass of a step may be smaller.
    passes = cell.get(quantities.ACCUMULATION)
    if math.ceil(batch * passes / product) == passes:
        return "", 1
    return f"{formula} = {product:g}, but global_batch is {batch:g}", 1


def _compare_tokens(cell: ResultCell) -> tuple[str, float] | None:
    batch, length, tokens = (cell.get(name) for name in ("global_batch", "sequence_length", "tokens_per_step"))
    formula, product = _samples_of_step(cell)
    if not ((batch or product) and length and tokens):
        return None
    if batch:
        formula, product = f"{batch:g}", batch
    expected = product * length
    # Padding is not counted by all.
    factor = max(expected / tokens, tokens / expected)
    fits = abs(tokens / expected - 1) <= _NEAR_MILLIONS
    if batch:
        fits, factor = tokens <= expected, 1
    if fits:
        return "", 1
    return f"{formula} × {length:g} = {expected:g}, but tokens_per_step is {tokens:g}", factor
