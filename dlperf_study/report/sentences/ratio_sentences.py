"""Sentences on ratios of throughputs to a declared baseline or reference: none claims more than its verdict."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from dlperf_study.core.wording import counted, first_of
from dlperf_study.dataset import cells
from dlperf_study.dataset.configuration_table import VERDICTS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.comparison import (
    BACKGROUND_LOAD,
    EQUAL,
    FASTER,
    NOT_DISTINGUISHABLE,
    RATIOS,
    SLOWER,
    TOO_FEW_RUNS,
    UNCLEAR,
)
from dlperf_study.metrics.outcome import disturbed_configurations
from dlperf_study.report import formatting
from dlperf_study.report.sentences.names import (
    NOTHING,
    PERCENT,
    Names,
    answer,
    is_vague_column,
)
from dlperf_study.report.sentences.step_sentences import waiting_for_gradients
from dlperf_study.report.series import all_groups, all_series, devices_label
from dlperf_study.report.tables.answers import EXPLANATIONS, same_program
from dlperf_study.report.tables.missing import explain_missing_interval, explain_unmeasured
from dlperf_study.report.tables.table_builders import verdict_text
from dlperf_study.study.grid import Denominator

#: So many claims have a sentence each; of more, those with the same verdict share one.
MOST_CLAIMS = 4
_SUBJECTS: dict[Denominator, str] = {"baseline": "scaling", "reference": "what is faster"}
#: What refers to the sentence on a serious diagnostic.
SEE_ABOVE = f"{formatting.DOUBTFUL} see above"
_UNKNOWN_AMOUNT = ", by an amount that is inconclusive"
_COMPARED = {FASTER: "faster than", SLOWER: "slower than", EQUAL: "as fast as"}


@dataclass(frozen=True)
class Claim:
    """The ratio of the throughput of one configuration to that of its baseline or reference.

    ``row`` is its row of the configurations, ``other`` that of the baseline or reference. ``name`` and ``comparison``
    are parts of its sentence: ``ResNet-50`` trains as fast ``on 2 devices as on 1 device``; ``configuration`` is what
    a list calls it.
    """

    dataset: Dataset
    role: Denominator
    row: Any
    other: Any
    name: str
    comparison: str
    configuration: str

    @property
    def word(self) -> str:
        """The verdict; empty where there is none."""
        verdict = getattr(self.row, VERDICTS[self.role])
        return "" if cells.is_missing(verdict) else str(verdict)

    @property
    def verdict(self) -> str:
        """The verdict as tables print it."""
        return verdict_text(self.word, getattr(self.row, f"{RATIOS[self.role]}_equal_within"))

    @property
    def no_verdict_reason(self) -> str:
        """Why nothing is said of the ratio."""
        for row, name in ((self.row, ""), (self.other, f"its {self.role}: ")):
            if not row.runs_completed:
                return name + explain_unmeasured(self.dataset, row, with_messages=False)
        return explain_missing_interval(self.dataset, self.row, RATIOS[self.role], self.role)

    @property
    def sentence(self) -> str:
        """What may be said of the ratio; empty where it has no verdict."""
        if not self.word:
            return ""
        name, rates = RATIOS[self.role], self._rates
        times = answer(formatting.column_text(self.row, name, " times"))
        reason = self._disbelief or self._explanation
        if self.word == EQUAL:
            equality = formatting.percent_at_most(getattr(self.row, f"{name}_equal_within"))
            return f"{self.name} trains as fast {self.comparison}, within {equality}: {times}, {rates}{reason}."
        if self.word == NOT_DISTINGUISHABLE:
            both = f"{self.name} {self.comparison.replace('as ', 'and ', 1)}"
            times = "" if self.is_vague else f"{times}, "
            unclear = f"{both} can't be distinguished with these runs{self.adjusted_for_others}"
            return f"{unclear}: {times}{rates}{self._disbelief}."
        if self.word in (TOO_FEW_RUNS, BACKGROUND_LOAD):
            both = f"{self.name} {self.comparison.replace('as ', 'and ', 1)}"
            return f"{both}: {times}, {rates}; no outcome, because {no_outcome_reason([self])}{self._disbelief}."
        if self.is_vague:
            return f"{self.only_verdict}, {rates}{reason}."
        return f"{self.name} trains {times} as fast {self.comparison}{self._of_ideal}, {rates}{reason}."

    @property
    def is_vague(self) -> bool:
        """Whether the interval of the ratio is so wide that a sentence calls it inconclusive."""
        return is_vague_column(self.row, RATIOS[self.role])

    @property
    def only_verdict(self) -> str:
        """That it is faster or slower, without by how much."""
        than = self.comparison.replace("as ", "than ", 1)
        return f"{self.name} trains {answer(self.word)} {than}{_UNKNOWN_AMOUNT}"

    @property
    def adjusted_for_others(self) -> str:
        """Why a ratio has no difference although its interval is without 1; empty where that has it."""
        low, high = (getattr(self.row, f"{RATIOS[self.role]}_{end}") for end in ("low", "high"))
        return ", judged together with the other ratios of the study" if low > 1 or high < 1 else ""

    @property
    def _of_ideal(self) -> str:
        """Which share of the ideal speedup that is; empty where both have as many devices."""
        is_scaled = self.role == "baseline" and self.row.world_size != self.other.world_size
        if not is_scaled or cells.is_missing(self.row.efficiency):
            return ""
        return f" ({formatting.column_text(self.row, 'efficiency', f'{formatting.THIN_SPACE}%', PERCENT)} of ideal)"

    @property
    def _rates(self) -> str:
        """The two throughputs with their unit: ``65.5 instead of 40.7 samples/s``."""
        rate = self.dataset.rate
        first, second = (formatting.format_column(row, rate)[0] for row in (self.row, self.other))
        return f"{first} instead of {second} {formatting.unit_of(rate, []).symbol}"

    @property
    def is_doubtful(self) -> bool:
        """Whether a serious diagnostic is about the ratio."""
        return (self.row.identity, RATIOS[self.role]) in self.dataset.doubtful_numbers

    @property
    def _disbelief(self) -> str:
        """The reference to the sentence on a serious diagnostic; empty without one."""
        return f"; {answer(SEE_ABOVE)}" if self.is_doubtful else ""

    @property
    def _explanation(self) -> str:
        """What a step waits for, or which part of it explains the difference to a reference; empty if unknown."""
        if self.role == "baseline":
            waiting = waiting_for_gradients(self.dataset, self.row)
            return f"; {waiting}" if waiting else ""
        part = self.row.difference_lies_in
        if cells.is_missing(part) or part == UNCLEAR:
            return ""
        explanation = EXPLANATIONS[part]
        return f"; {explanation[0].lower()}{explanation[1:].rstrip('.')}"


def speedup_claims(dataset: Dataset) -> list[Claim]:
    """Return the claim on the most measured devices of each series, where these are not its own baseline.

    And on the most that it planned, where no run of these completed.
    """
    names, rows = Names(dataset), dataset.configuration_rows
    claims = []
    ends = [(*line.measured_identities[-1:], line.identities[-1]) for line in all_series(dataset)]
    for last in map(rows.__getitem__, dict.fromkeys(chain.from_iterable(ends))):
        if last.is_baseline:
            continue
        baseline = rows[last.baseline_identity]
        name, comparison = names.of_configuration(last), f"as {names.of_configuration(baseline)}"
        if names.same_series(last, baseline):
            name, comparison = names.of_series(last), f"on {devices_label(last)} as on {devices_label(baseline)}"
        configuration = names.of_configuration(last)
        claims.append(Claim(dataset, "baseline", last, baseline, name, comparison, configuration))
    return claims


def reference_claims(dataset: Dataset) -> list[Claim]:
    """Return the claim on each configuration with a reference, without those that are the same program."""
    return [claim for claim in _all_reference_claims(dataset) if not same_program(claim.row, claim.other)]


def _all_reference_claims(dataset: Dataset) -> list[Claim]:
    rows = dataset.configuration_rows
    claims, groups = [], all_groups(dataset)
    for group in groups:
        labels = dict(zip(group.rows["identity"], group.rows["label"], strict=True))
        reference_identity, *compared = labels
        reference, model = rows[reference_identity], formatting.model_name(group.reference)
        comparison = f"as with {labels[reference_identity]} ({group.shared})"
        for identity in compared:
            row, label = rows[identity], labels[identity]
            listed_as = f"{label} ({group.label})" if len(groups) > 1 else label
            name = f"{model} with {label}"
            claims.append(Claim(dataset, "reference", row, reference, name, comparison, listed_as))
    return claims


def no_outcome_reason(claims: Sequence[Claim]) -> str:
    """Return why of some ratios with intervals neither *faster*, *slower* nor *equal* is claimed."""
    role = claims[0].role
    if claims[0].word == BACKGROUND_LOAD:
        if len(claims) == 1:
            row, other = claims[0].row, claims[0].other
            disturbed = disturbed_configurations((claims[0].dataset.whole or claims[0].dataset).runs)
            names = [name for each, name in ((row, "it"), (other, f"its {role}")) if each.identity in disturbed]
            verb = "has" if len(names) == 1 else "have"
            return f"{' and '.join(names)} {verb} fewer than three runs without background load"
        return f"they or their {role}s have fewer than three runs without background load"
    missing = max(int(getattr(claim.row, f"{RATIOS[role]}_rounds_missing")) for claim in claims)
    noun = "run" if claims[0].dataset.plan.ingested_from else "round"
    return f"{counted(missing, f'more {noun}')} {'is' if missing == 1 else 'are'} needed for a test"


def claim_sentences(claims: Sequence[Claim], most_named: int = formatting.MOST_NAMED) -> Iterator[str]:
    """Yield a sentence for each claim, or of many claims one for each verdict; then why others have no verdict.

    Each holds in 95 % of cases: of one claim by its verdict; of several, because these are judged together. Of many, a
    doubtful ratio is in none of their counts, and has its own sentence. ``most_named``: so many
    configurations of which a sentence says the same are named.
    """
    decided = [claim for claim in claims if claim.word]
    if len(decided) <= MOST_CLAIMS:
        yield from (claim.sentence for claim in decided)
    else:
        yield from _counted_sentences(decided, len(claims), most_named)
    yield from undecided_sentences(claims, most_named)


def undecided_sentences(claims: Sequence[Claim], most_named: int) -> Iterator[str]:
    """Yield why some of these claims have no verdict, each with its own reason; nothing where all have one.

    Where none has a verdict: that nothing can be concluded.
    """
    undecided = [claim for claim in claims if not claim.word]
    if not undecided:
        return
    by_reason: defaultdict[str, list[Claim]] = defaultdict(list)
    for claim in undecided:
        by_reason[claim.no_verdict_reason].append(claim)
    subject = _SUBJECTS[undecided[0].role]
    if len(undecided) == len(claims) and len(by_reason) == 1:
        yield f"{NOTHING} on {subject} ({undecided[0].no_verdict_reason})."
        return
    reasons = sorted(by_reason, key=lambda reason: len(by_reason[reason]), reverse=True)
    parts = [f"{_named(by_reason[reason], most_named)} ({reason})" for reason in reasons[:most_named]]
    if more := sum(len(by_reason[reason]) for reason in reasons[most_named:]):
        parts.append(f"and {more} more")
    yield f"{NOTHING} on {f'{subject}: ' if len(undecided) == len(claims) else ''}{'; '.join(parts)}."


def _named(claims: Sequence[Claim], most_named: int) -> str:
    return first_of([claim.configuration for claim in claims], most_named, "; ")


def _counted_sentences(claims: Sequence[Claim], total: int, most_named: int) -> Iterator[str]:
    """Yield a sentence for each outcome of these claims; ``total``: of how many, with those that have none."""
    believed = [claim for claim in claims if not claim.is_doubtful]
    for word in (FASTER, SLOWER, EQUAL, NOT_DISTINGUISHABLE, TOO_FEW_RUNS, BACKGROUND_LOAD):
        of_word = [claim for claim in believed if claim.word == word]
        if of_word:
            yield _counted_sentence(of_word, total, word, most_named)
    doubtful = [claim.configuration for claim in claims if claim.is_doubtful]
    if doubtful:
        yield f"Not counted, {SEE_ABOVE}: {first_of(doubtful, most_named, '; ')}."
    if claims[0].role == "baseline":
        return
    all_claims = _all_reference_claims(claims[0].dataset)
    if names := [claim.configuration for claim in all_claims if same_program(claim.row, claim.other)]:
        reason = "they are the same programs as their references"
        if len(names) == 1:
            reason = "it is the same program as its reference"
        yield f"Not counted, as {reason}: {first_of(names, formatting.MOST_NAMED, '; ')}."


def _counted_sentence(claims: Sequence[Claim], total: int, word: str, most_named: int) -> str:
    """Return how many configurations have this outcome, between what their ratios are, and which these are."""
    names, role = _named(claims, most_named), claims[0].role
    share = f"{len(claims)} of {counted(total, 'configuration')}"
    verb, pronoun = ("trains", "its") if len(claims) == 1 else ("train", "their")
    if word in (TOO_FEW_RUNS, BACKGROUND_LOAD):
        return f"No outcome for {share}{_ratios_text(claims)}, because {no_outcome_reason(claims)}: {names}."
    if word == NOT_DISTINGUISHABLE:
        sentence = answer(f"{share} can't be distinguished from {pronoun} {role}")
    else:
        sentence = answer(f"{share} {verb} {_COMPARED[word]} {pronoun} {role}")
    return f"{sentence}{_ratios_text(claims)}: {names}."


def _ratios_text(claims: Sequence[Claim]) -> str:
    """Return between what the ratios of some claims are, in brackets."""
    column = RATIOS[claims[0].role]
    ordered = sorted(claims, key=lambda claim: float(getattr(claim.row, column)))
    least, most = (formatting.column_text(claim.row, column) for claim in (ordered[0], ordered[-1]))
    return f" ({least} times)" if least == most else f" ({least} to {most} times)"
