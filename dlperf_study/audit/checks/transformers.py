"""Language models: degrees of parallelism, batches and tokens of a step, and FLOPs with recomputed activations."""

import math
import re
from collections.abc import Callable, Iterator
from fractions import Fraction

from dlperf_study.audit.checks import AuditDiagnostic, check
from dlperf_study.audit.checks.peaks import tokens_of_device
from dlperf_study.audit.limits import peak_of
from dlperf_study.audit.result_cell import ACCUMULATION, HFU, MFU, MICRO_BATCH, ResultCell, quotient
from dlperf_study.audit.results import Results, grouped
from dlperf_study.core.errors import Severity
from dlperf_study.core.wording import counted

#: Columns that divide the devices: tensors, layers and sequences are split, and each copy of the network has its data.
_SPLITTING, _COPIES = ("tp", "pp", "cp"), "dp"
#: How many deviating rows a diagnostic shows.
_MOST_ROWS = 3
#: The sizes of a network in its name: ``gpt_h1536_l16``.
_SIZES = re.compile(r"(?:^|_)h(?P<hidden>\d+)_l(?P<layers>\d+)(?:_|$)")
#: The vocabularies of GPT-2, Llama and BERT; a program may pad them to a multiple of 1024.
_VOCABULARIES = (30_000, 52_000)
#: How far FLOPs of a token may be from the formula: shares are printed with two digits.
_NEAR = Fraction(3, 200)
#: Recomputing all activations takes one more forward pass, a third of the rest; attention may be recomputed twice.
_LARGEST_HFU = Fraction(3, 2)
_OTHER_DEGREES = (
    "the degrees may leave one out, or one may be within another: of experts, or of shards within copies",
)
_OTHER_BATCH = ("the micro-batch may be of all devices, or the global batch be cut to what the data has",)
_LONG_SAMPLES = ("one of the numbers may be rounded", "the sequence length may be that of another phase of training")
_RECOMPUTED = ("the network may have other sizes than its name says",)
#: Returns what contradicts what in a row; empty if nothing does, and None if the row does not print it.
Comparison = Callable[[ResultCell], str | None]


@check("Do the degrees of parallelism fit the devices?", "rows with degrees and devices")
def degrees(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every row with degrees of parallelism: their product divides its devices."""
    return _examine_rows(results, _compare_degrees, _OTHER_DEGREES)


@check("Is a global batch micro-batch × accumulation × copies?", "rows with micro-batch and accumulation")
def accumulations(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every row that prints all of them."""
    return _examine_rows(results, _compare_accumulation, _OTHER_BATCH)


@check("Are the tokens of a step at most samples × sequence length?", "rows with all three")
def step_tokens(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every row that prints all three numbers."""
    return _examine_rows(results, _compare_tokens, _LONG_SAMPLES)


@check("Is the share of recomputation in HFU and not in MFU?", "shares of a peak of transformers")
def recomputation(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every HFU next to an MFU, and for the shares that are called MFU of each table."""
    for hardware, model in results.pairs(HFU, MFU):
        yield _compare_shares(hardware, model)
    for cells in grouped(results.of(MFU), lambda cell: cell.table).values():
        compared = {cell: reading for cell in cells if (reading := _read_share(results, cell)) is not None}
        if compared:
            yield _describe_recomputed(compared)


def _examine_rows(
    results: Results, compare: Comparison, explanations: tuple[str, ...]
) -> Iterator[AuditDiagnostic | None]:
    """Yield None for each row that agrees with itself, and one warning for all other rows of a table."""
    rows = grouped(results.cells, lambda cell: (*cell.table, cell.get("row"), cell.get("identity")))
    contradictions: dict[tuple[object, ...], list[tuple[ResultCell, str]]] = {}
    for cell in (cells[0] for cells in rows.values()):
        contradiction = compare(cell)
        if contradiction:
            contradictions.setdefault(cell.table, []).append((cell, contradiction))
        elif contradiction is not None:
            yield None
    for found_in_table in contradictions.values():
        yield AuditDiagnostic(
            Severity.WARNING,
            tuple(cell for cell, _ in found_in_table),
            _rows_phrase([phrase for _, phrase in found_in_table]),
            explanations,
        )


def _rows_phrase(phrases: list[str]) -> str:
    """Return the first phrases, and how many rows there are."""
    shown = "; ".join(phrases[:_MOST_ROWS])
    return shown if len(phrases) <= _MOST_ROWS else f"{counted(len(phrases), 'row')}: {shown}; …"


def _degree(cell: ResultCell, name: str) -> int | None:
    """Return a degree of parallelism of a row; None if it prints none, or no number."""
    printed = next((str(value) for column, value in cell.facts.items() if column.casefold() == name), "")
    return int(printed) if printed.isdecimal() and int(printed) > 0 else None


def _split(cell: ResultCell) -> int:
    """Return over how many devices one copy of the network is split."""
    return math.prod(_degree(cell, name) or 1 for name in _SPLITTING)


def _compare_degrees(cell: ResultCell) -> str | None:
    printed = {name: degree for name in (*_SPLITTING, _COPIES) if (degree := _degree(cell, name))}
    if not cell.world_size or not printed:
        return None
    product = math.prod(printed.values())
    # Copies whose state is in shards need not be counted as copies.
    if cell.world_size % product == 0:
        return ""
    formula = " × ".join(f"{name} {degree}" for name, degree in printed.items())
    return f"{formula} = {product}, on {counted(cell.world_size, 'device')}"


def _compare_accumulation(cell: ResultCell) -> str | None:
    micro_batch, passes, batch = (cell.get(name) for name in (MICRO_BATCH, ACCUMULATION, "global_batch"))
    copies = _degree(cell, _COPIES) or (cell.world_size or 0) // _split(cell)
    if not (micro_batch and passes and batch and copies):
        return None
    # The last pass of a step may be smaller.
    if math.ceil(batch / copies / micro_batch) == passes:
        return ""
    product = micro_batch * passes * copies
    return f"{micro_batch:g} × {passes:g} × {copies} = {product:g}, but global_batch is {batch:g}"


def _compare_tokens(cell: ResultCell) -> str | None:
    batch, length, tokens = (cell.get(name) for name in ("global_batch", "sequence_length", "tokens_per_step"))
    if not (batch and length and tokens):
        return None
    # Padding is not counted by all.
    if tokens <= batch * length:
        return ""
    return f"{batch:g} × {length:g} = {batch * length:g}, but tokens_per_step is {tokens:g}"


def _compare_shares(hardware: ResultCell, model: ResultCell) -> AuditDiagnostic | None:
    """Return a diagnostic if recomputation saves work, or is more than activations can take."""
    if not (hardware.printed.is_positive and model.printed.is_positive):
        return None
    low, high = quotient(hardware.printed, model.printed, truncated=True)
    if high >= 1 and low <= _LARGEST_HFU:
        return None
    computation = f"hfu / mfu = {hardware.text} / {model.text} = {hardware.value / model.value:.3g}"
    expected = "it is from 1 without recomputation to 4/3 if all activations are recomputed"
    return AuditDiagnostic(Severity.ERROR, (hardware, model), f"{computation}: {expected}")


def _read_share(results: Results, share: ResultCell) -> tuple[str, bool] | None:
    """Return the FLOPs of a token that a share of a peak implies, and whether only recomputation explains them.

    None where the sizes of the network, its peak or its rate are not known.
    """
    sizes, peak = _SIZES.search(str(share.get("model"))), peak_of(share)
    rate, length = tokens_of_device(results, share), share.get("sequence_length")
    if not (sizes and peak and rate and length and share.printed.is_positive):
        return None
    layers, hidden = int(sizes["layers"]), int(sizes["hidden"])
    low, high = (bound * Fraction(peak.flops) / Fraction(rate) for bound in share.printed.bounds(truncated=True))
    needed = _flops_of_token(layers, hidden, int(length), 72)
    recomputed = _flops_of_token(layers, hidden, int(length), 96)
    is_recomputed = low > needed[1] * (1 + _NEAR) and recomputed[0] <= high and low <= recomputed[1] * (1 + _NEAR)
    phrase = f"{share.text} of {peak.flops:.4g} FLOP/s / {rate:.4g} tokens/s = {share.value * peak.flops / rate:.4g} "
    phrase += f"FLOP a token; the network needs at most {float(needed[1]):.4g}"
    return phrase, is_recomputed


def _flops_of_token(layers: int, hidden: int, length: int, multiple: int) -> tuple[Fraction, Fraction]:
    """Return FLOPs of a token with the smallest and the largest vocabulary; ``multiple``: 72, 96 with recomputation.

    Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters (2021), equation 3.
    """
    of_layers = multiple * layers * hidden**2 * (1 + Fraction(length, 6 * hidden))
    smallest, largest = _VOCABULARIES
    return of_layers + 6 * hidden * smallest, of_layers + 6 * hidden * largest


def _describe_recomputed(compared: dict[ResultCell, tuple[str, bool]]) -> AuditDiagnostic | None:
    """Return one error for the shares of a table that only recomputation explains."""
    phrases = {cell: phrase for cell, (phrase, is_recomputed) in compared.items() if is_recomputed}
    if not phrases:
        return None
    computation = f"{_rows_phrase(list(phrases.values()))}. With recomputed activations it fits: it is hfu, and not mfu"
    return AuditDiagnostic(Severity.ERROR, tuple(phrases), computation, _RECOMPUTED)
