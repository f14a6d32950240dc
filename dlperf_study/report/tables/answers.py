"""Answers in plain words, made from the dataset: no sentence claims more than its interval."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd

from dlperf_study.analysis.comparison import BOTH, COMPUTATION, EXCHANGE, UNCLEAR, UNDECIDED
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context, formatting
from dlperf_study.report.context import completed_runs, measured
from dlperf_study.report.formatting import human, is_missing, listed, plain, unit_of
from dlperf_study.report.series import Group, all_groups
from dlperf_study.report.tables.missing import why_missing, why_no_interval, why_not_measured
from dlperf_study.study.configuration import FIELD_NAMES

# What the intervals can't show, and a reader must know before believing a ratio.


ALONE = "Every verdict stands alone: the more there are, the more of them are wrong by chance."
_IN_BLOCKS = (
    "The runs of one configuration were measured one right after another: a machine that slowly changes its speed "
    "sets configurations apart, and no interval shows it."
)
#: Frameworks whose programs are the same where there is no other device to exchange with.
_SAME_ALONE = ("torch_ddp", "horovod_torch")


def cautions(dataset: Dataset) -> tuple[str, ...]:
    """Return what holds for every comparison of two configurations of the study."""
    return tuple(filter(None, (_drift(dataset), _same_program(dataset))))


def same_program(row: Any, other: Any) -> bool:
    """Say whether two rows of the configurations train with one program: there is nobody to exchange with."""
    return {row.framework, other.framework} == set(_SAME_ALONE) and row.world_size == other.world_size == 1


def _drift(dataset: Dataset) -> str:
    """Return the warning about drift where the runs of some configuration lie in one block of time."""
    runs = completed_runs(dataset).dropna(subset=["started"]).sort_values("started", kind="stable")
    identities = runs["identity"].reset_index(drop=True)
    blocks = pd.DataFrame({"identity": identities, "block": (identities != identities.shift()).cumsum()})
    several = blocks.groupby("identity")["block"].agg(["size", "nunique"])
    alone = len(several) < 2
    return "" if alone or not ((several["size"] > 1) & (several["nunique"] == 1)).any() else _IN_BLOCKS


def _same_program(dataset: Dataset) -> str:
    """Return that two frameworks run one program on one device, and how far apart it was measured."""
    ratios = list(_apart(measured(dataset)))
    if not ratios:
        return ""
    names = listed(list(map(human, _SAME_ALONE)))
    return (
        f"On one device {names} run the same program. What differs there ({', '.join(ratios)}) is not theirs, but how "
        "far apart one program is measured twice here; believe no smaller difference between other configurations."
    )


def _apart(rows: pd.DataFrame) -> Iterator[str]:
    """Yield the model and the larger rate over the smaller of each pair that differs in its framework alone."""
    single = rows[(rows["world_size"] == 1) & rows["framework"].isin(_SAME_ALONE)]
    alike = [name for name in FIELD_NAMES if name != "framework"]
    for _, pair in single.groupby(alike, sort=False, dropna=False):
        if len(pair) == len(_SAME_ALONE):
            yield f"{human(pair['model'].iloc[0])}: {plain(pair['throughput'].max() / pair['throughput'].min())}×"


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
    rate = f"{formatting.plain(reference.throughput / unit.size)} {unit.symbol}"
    return " ".join((f"It reaches {rate}.", *(_sentence(dataset, row, reference) for row in group.others)))


def _sentence(dataset: Dataset, row: Any, reference: Any) -> str:
    if not row.runs_completed:
        return f"{row.label} has no value: {why_not_measured(dataset, row)}."
    if is_missing(row.verdict):
        why = why_no_interval(row, "reference")
        return f"{row.label} reaches {formatting.plain(row.relative_throughput)}× that, but is not ranked: {why}."
    value, interval = formatting.with_interval(
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
