"""Conventions of language models: FLOPs and peaks of utilisation, parameter counts."""

import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from statistics import median

from dlperf_study.audit import limits, quantities
from dlperf_study.audit.checks import Agreeing, AuditDiagnostic, check
from dlperf_study.audit.checks.peaks import SIZE_IN_NAME, tokens_of_device
from dlperf_study.audit.checks.transformers import copy_devices, rows_phrase
from dlperf_study.audit.result_cell import ResultCell, quotient
from dlperf_study.audit.results import Results, grouped
from dlperf_study.core.errors import Severity
from dlperf_study.study.device_peaks import EIGHT_BITS

#: The sizes of a network in its name: ``gpt_h1536_l16``.
_SIZES = re.compile(r"(?:^|_)h(?P<hidden>\d+)_l(?P<layers>\d+)(?:_|$)")
#: The smallest vocabulary of a language model, and that of GPT-2, padded; tables that print larger ones are rare.
_VOCABULARIES = (30_000, 52_000)
#: Vocabularies of GPT-2, as it is and padded to multiples of 64 and of 1024, of BERT, Llama 2 and Llama 3.
_KNOWN_VOCABULARIES = (50_257, 50_304, 51_200, 30_522, 32_000, 128_256)
#: How far FLOPs of a token may be from the formula: shares are printed with two digits.
_NEAR = Fraction(3, 200)
#: Recomputing all activations takes one more forward pass, a third of the rest; attention may be recomputed twice.
_LARGEST_HFU = Fraction(3, 2)
#: Peaks of one device that FLOP/s and shares imply are this near to each other, and those of data sheets.
_NEAR_PEAK = 0.01
_ENOUGH = 3
_RECOMPUTED = ("the model may have other sizes than its name suggests",)
_OTHER_PEAK = ("the device may differ from its name in the table, or FLOPs may be counted differently",)
_OTHER_NETWORK = ("the model may be of another kind, such as a mixture of experts or a model with shared layers",)
#: What names a mixture of experts: ``8x7B``, ``30B-A3B``.
_PARTS_IN_NAME = re.compile(r"\d ?[x×] ?\d|-?A\d{1,3}(?:\.\d)?B|MoE|experts", re.IGNORECASE)
#: Printed FLOPs / (6 × parameters × tokens). Below the first limit only some parameters are used; up to the second is
#: usual; above the third is impossible, except for sequences longer than the fourth.
_FEWEST_OF_FLOPS, _LIKELY_OF_FLOPS, _MOST_OF_FLOPS, _SHORT_SEQUENCE = 0.7, 1.5, 3.0, 4096
_FEWER_PARAMETERS = ("the model may be a mixture of experts, or only some of its parameters were trained",)
_BINARY = Fraction(2**30, 10**9)


@check("Is the share of recomputation in HFU and not in MFU?", "shares of a peak of transformers")
def recomputation(results: Results) -> Iterator[AuditDiagnostic | Agreeing]:
    """Compare every HFU with an MFU, and every two MFUs of a table."""
    for hardware, model in results.pairs(quantities.HFU, quantities.MFU):
        is_possible = True
        if hardware.printed.is_positive and model.printed.is_positive:
            low, high = quotient(hardware.printed, model.printed, truncated=True)
            is_possible = high >= 1 and low <= _LARGEST_HFU
        if is_possible:
            yield hardware, model
            continue
        computation = f"hfu / mfu = {hardware.text} / {model.text} = {hardware.value / model.value:.3g}"
        expected = "expected is 1 without recomputation, up to 4/3 if all activations are recomputed"
        yield AuditDiagnostic(Severity.ERROR, (hardware, model), f"{computation}: {expected}")
    for cells in grouped(results.select(quantities.MFU), lambda cell: cell.table).values():
        readings = [(cell, reading) for cell in cells if (reading := _read_share(results, cell)) is not None]
        unexplained = []
        for cell, (phrase, reason) in readings:
            if reason:
                unexplained.append((cell, phrase, reason))
        if unexplained:
            shares, phrases, reasons = zip(*unexplained, strict=True)
            computation = f"{rows_phrase(phrases)}. {'; '.join(dict.fromkeys(reasons))}"
            yield AuditDiagnostic(Severity.ERROR, shares, computation, _RECOMPUTED)
        elif readings:
            yield tuple(cell for cell, _ in readings)


@check("Which peak do FLOP/s and their share imply?", "shares of a peak with FLOP/s of a device")
def implied_peaks(results: Results) -> Iterator[AuditDiagnostic | Agreeing | None]:
    """Compare the peak that each row implies with a dense peak."""
    pairs_of_rows = results.pairs(quantities.MFU, quantities.DEVICE_FLOPS)
    shares = []
    for pair in pairs_of_rows:
        if all(cell.printed.is_positive for cell in pair):
            shares.append(pair)
    devices = grouped(shares, lambda pair: (pair[0].get("source"), pair[0].get("precision"), _kind_of_device(pair[0])))
    for pairs in devices.values():
        middle = None
        if len(pairs) >= _ENOUGH:
            middle = median(flops.value / share.value for share, flops in pairs)
        for share, flops in pairs:
            if limits.find_device_peak(share) is None:
                yield _compare_peak(share, flops, middle)


def _kind_of_device(share: ResultCell) -> str:
    """Return a device name without its count: ``2x v5p-128`` is ``v5p-128``."""
    return re.sub(r"^\d+\s*[x×]\s*", "", str(share.get("device_name")))


def _compare_peak(share: ResultCell, flops: ResultCell, middle: float | None) -> AuditDiagnostic | Agreeing | None:
    """Return a diagnostic, or what agrees; None without a peak."""
    implied = flops.value / share.value
    rounding = float(share.printed.step / share.printed.exact + flops.printed.step / flops.printed.exact) + _NEAR_PEAK
    has_8_bits = EIGHT_BITS in str(share.get("precision")).lower()
    peaks = []
    for peak in limits.dense_peaks(share):
        if has_8_bits or peak.number_format != EIGHT_BITS:
            peaks.append(peak)
    computation = f"{flops.text} / {share.text} implies a peak of {implied / 1e12:.4g} TFLOP/s"
    if peaks and not any(abs(implied / peak.flops - 1) <= rounding for peak in peaks):
        computation += limits.name_peak(share, implied, rounding)
    elif not peaks and middle and abs(implied / middle - 1) > rounding:
        computation += f", and other rows {middle / 1e12:.4g}"
    elif peaks or middle:
        return share, flops
    else:
        return None
    return AuditDiagnostic(Severity.ERROR, (share, flops), computation, _OTHER_PEAK)


@check("Do FLOP/s fit 6 × parameters × tokens/s?", "FLOP/s of models with their size in the name")
def model_flops(results: Results) -> Iterator[AuditDiagnostic | Agreeing]:
    """Compare FLOP/s with 6 FLOPs per parameter and token (Kaplan et al., 2020)."""
    for flops in results.select(quantities.DEVICE_FLOPS):
        throughput = results.at_same_point(flops, quantities.TOKENS_OF_DEVICE)
        size = SIZE_IN_NAME.search(str(flops.get("model")))
        if throughput is None or not size or _PARTS_IN_NAME.search(str(flops.get("model"))):
            continue
        expected = 6 * float(size[1]) * 1e9 * throughput.value
        # Attention and recomputation add to it; of a mixture of experts a token uses a part.
        share = flops.value / expected if expected else 0
        most = _MOST_OF_FLOPS * max(1.0, (flops.get("sequence_length") or 0) / _SHORT_SEQUENCE)
        if _FEWEST_OF_FLOPS <= share <= most:
            yield flops, throughput
            continue
        computation = f"{throughput.text} tokens/s × 6 × {size[1]}e9 parameters = {expected / 1e12:.4g} TFLOP/s, "
        computation += f"printed {flops.text}"
        severity, explanations = Severity.NOTE, _FEWER_PARAMETERS
        if share > most:
            severity, explanations = Severity.ERROR, _OTHER_NETWORK
        elif _FEWEST_OF_FLOPS <= share * 10 <= _LIKELY_OF_FLOPS:
            severity = Severity.WARNING
        yield AuditDiagnostic(severity, (flops, throughput), computation, explanations)


@check(
    "Does a number of parameters follow from the sizes of its model?",
    "tables with parameters and sizes",
    compares=False,
)
def parameters(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Compare parameter counts of transformers with their layers and hidden sizes."""
    names = ("parameters", quantities.LAYERS, quantities.HIDDEN)
    for cells in grouped(results.cells, lambda cell: cell.table).values():
        rows = {}
        for cell in cells:
            rows[(*map(cell.get, names), cell.get("tp"), cell.get("pp"))] = cell
        complete = []
        for row, cell in rows.items():
            if None not in row[: len(names)] and min(row[: len(names)]) > 0:
                complete.append(cell)
        if complete:
            yield _compare_parameters(complete)


def _compare_parameters(rows: Sequence[ResultCell]) -> AuditDiagnostic | None:
    """Return a diagnostic if only another unit or a shard explains all rows."""
    if all(_is_near(row) for row in rows) and (len(rows) < 2 or not _fits(rows, _BINARY) or _fits(rows, Fraction(1))):
        return None
    shards = [Fraction(1, copy_devices(row)) for row in rows]
    if _fits(rows, _BINARY):
        reason = "all rows fit 2^30 as a billion"
    elif min(shards) < 1 and all(_is_near(row, shard) for row, shard in zip(rows, shards, strict=True)):
        reason = "it is the shard of one device"
    else:
        reason = ""
    phrases = []
    for row in rows:
        smallest, largest = _weights(row, _VOCABULARIES[0]), _weights(row, _VOCABULARIES[1])
        sizes = f"{row.get(quantities.LAYERS):g} layers of {row.get(quantities.HIDDEN):g}"
        extent = f"{float(smallest):.4g} to {float(largest):.4g}"
        phrases.append(f"{sizes} have {extent}, printed {row.get('parameters'):.4g}")
    computation, severity = rows_phrase(phrases), Severity.WARNING
    if reason:
        computation, severity = f"{computation}: {reason}", Severity.ERROR
    return AuditDiagnostic(severity, tuple(rows), computation, _OTHER_NETWORK)


def _weights(row: ResultCell, vocabulary: int) -> Fraction:
    """Return the parameters of a GPT (Narayanan et al., 2021)."""
    layers, hidden = int(row.get(quantities.LAYERS)), int(row.get(quantities.HIDDEN))
    vocabulary_size = int(row.get(quantities.VOCABULARY) or vocabulary)
    return Fraction(12 * layers * hidden**2 + 13 * layers * hidden + (vocabulary_size + 2048) * hidden)


def _is_near(row: ResultCell, shard: Fraction = Fraction(1)) -> bool:
    """Return whether a known kind of transformer block has these parameters."""
    layers, hidden = int(row.get(quantities.LAYERS)), int(row.get(quantities.HIDDEN))
    blocks = layers * hidden**2 * shard
    return bool(10 * blocks <= row.get("parameters") <= 15 * blocks + 2 * 262_144 * hidden)


def _fits(rows: Iterable[ResultCell], unit: Fraction) -> bool:
    """Return whether the formula with one vocabulary fits all rows."""
    for vocabulary in _KNOWN_VOCABULARIES:
        for row in rows:
            step = row.get(quantities.PARAMETERS_STEP) or 1
            if abs(_weights(row, vocabulary) / unit - row.get("parameters")) > step:
                break
        else:
            return True
    return False


def _read_share(results: Results, share: ResultCell) -> tuple[str, str] | None:
    """Return the implied FLOPs per token as text, and a possible explanation."""
    peak, throughput, length = (
        limits.find_device_peak(share),
        tokens_of_device(results, share),
        share.get("sequence_length"),
    )
    layers, hidden = share.get(quantities.LAYERS), share.get(quantities.HIDDEN)
    sizes_in_name = _SIZES.search(str(share.get("model")))
    if sizes_in_name and not (layers and hidden):
        layers, hidden = sizes_in_name["layers"], sizes_in_name["hidden"]
    if not (layers and hidden and peak and throughput and length and share.printed.is_positive):
        return None
    sizes = int(layers), int(hidden)
    low, high = (bound * Fraction(peak.flops) / Fraction(throughput) for bound in share.printed.bounds(truncated=True))
    needed, recomputed = (_flops_of_token(*sizes, int(length), multiple) for multiple in (72, 96))
    phrase = f"{share.text} of {peak.flops:.4g} FLOP/s / {throughput:.4g} tokens/s = "
    phrase += f"{share.value * peak.flops / throughput:.4g} "
    phrase += f"FLOP per token; the model needs {float(needed[0]):.4g} to {float(needed[1]):.4g}"
    # With half of the attention, as the causal mask leaves, and without the vocabulary.
    fewest = 72 * sizes[0] * sizes[1] ** 2
    if fewest * (1 - _NEAR) <= high and low <= needed[1] * (1 + _NEAR):
        return phrase, ""
    if low > needed[1] and recomputed[0] * (1 - _NEAR) <= high and low <= recomputed[1] * (1 + _NEAR):
        return phrase, "It fits with recomputed activations: it is hfu, not mfu"
    implied = float(needed[1]) * throughput / share.value
    name = limits.name_peak(share, implied, 3 * float(_NEAR), with_other_devices=False)
    return phrase, f"The share is of {implied / 1e12:.4g} TFLOP/s{name}" if name else ""


def _flops_of_token(layers: int, hidden: int, length: int, multiple: int) -> tuple[Fraction, Fraction]:
    """Return FLOPs per token for the smallest and the largest vocabulary.

    ``multiple``: 72, or 96 with recomputation. Narayanan et al., Efficient Large-Scale Language Model Training on GPU
    Clusters (2021), equation 3.
    """
    of_layers = multiple * layers * hidden**2 * (1 + Fraction(length, 6 * hidden))
    smallest, largest = _VOCABULARIES
    return of_layers + 6 * hidden * smallest, of_layers + 6 * hidden * largest
