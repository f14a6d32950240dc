"""Answers in plain words, made from the dataset: no sentence claims more than its interval."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

from dlperf_study.analysis.comparison import BOTH, COMPUTATION, EXCHANGE, UNCLEAR, UNDECIDED
from dlperf_study.analysis.dataset import Dataset
from dlperf_study.report import context, numbers
from dlperf_study.report.cautions import ALONE, cautions, same_program
from dlperf_study.report.groups import Group, all_groups
from dlperf_study.report.missing import why_missing, why_no_interval, why_not_measured
from dlperf_study.report.numbers import is_missing
from dlperf_study.report.units import unit_of

_LIES_IN = {
    COMPUTATION: "The difference lies mostly in the computation.",
    EXCHANGE: "The difference lies mostly in the exposed exchange.",
    BOTH: "The difference lies in both computation and exposed exchange.",
    UNCLEAR: "Whether the difference lies in computation or exchange, these runs can't tell.",
}
NOTHING_DECLARED = "The study declares no reference, so nothing is compared."


@dataclass(frozen=True)
class Answer:
    """What was found, by what it was found for; what must be known before it is believed, and what holds for it."""

    findings: tuple[tuple[str, str], ...]
    caution: str
    remark: str

    def _repr_html_(self) -> str:
        if not self.findings:
            return f'<p class="nothing">{escape(NOTHING_DECLARED)}</p>'
        items = "".join(f"<li><b>{escape(place)}:</b> {escape(said)}</li>" for place, said in self.findings)
        caution, remark = (f"<p>{escape(text)}</p>" if text else "" for text in (self.caution, self.remark))
        return f'<div class="answer">{caution}<ul>{items}</ul>{remark}</div>'


def comparison(dataset: Dataset) -> Answer:
    """Return which configurations are faster or slower than their reference, by how much and in which part."""
    findings = tuple((_place(group), _finding(dataset, group)) for group in all_groups(dataset))
    caution = (context.repetition(dataset, ratios=True), ALONE, *cautions(dataset))
    remarks = (context.input_note(dataset), context.quick_label(dataset))
    return Answer(findings, " ".join(caution), " ".join(filter(None, map(str.strip, remarks))))


def _place(group: Group) -> str:
    return f"{group.label}, against {group.reference.label}"


def _finding(dataset: Dataset, group: Group) -> str:
    reference = group.reference
    if not reference.runs_completed:
        return f"No comparison, because the reference has no value: {why_not_measured(dataset, reference)}."
    if not group.others:
        return "Nothing else is compared with it."
    unit = unit_of("throughput", [reference.throughput])
    rate = f"{numbers.plain(reference.throughput / unit.size)} {unit.symbol}"
    return " ".join((f"It reaches {rate}.", *(_sentence(dataset, row, reference) for row in group.others)))


def _sentence(dataset: Dataset, row: Any, reference: Any) -> str:
    if not row.runs_completed:
        return f"{row.label} has no value: {why_not_measured(dataset, row)}."
    if is_missing(row.verdict):
        why = why_no_interval(row, "reference")
        return f"{row.label} reaches {numbers.plain(row.relative_throughput)}× that, but is not ranked: {why}."
    value, interval = numbers.with_interval(
        row.relative_throughput, row.relative_throughput_low, row.relative_throughput_high, decision=1
    )
    if row.verdict == UNDECIDED:
        return f"{row.label} is {UNDECIDED} from it ({value}× {interval})."
    return " ".join((f"{row.label} is {value}× {interval} as fast.", *_explanation(dataset, row, reference)))


def _explanation(dataset: Dataset, row: Any, reference: Any) -> Iterator[str]:
    if same_program(row, reference):
        yield "Both run the same program on one device, so this is no difference between the two."
    elif is_missing(row.difference_lies_in):
        yield f"Where the difference lies is not known: {why_missing(dataset, row, 'difference_lies_in')}."
    else:
        yield _LIES_IN[row.difference_lies_in]
