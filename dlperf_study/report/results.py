"""The paragraph on results of a paper: the sentences of the report, whose numbers are macros."""

from collections.abc import Iterable, Iterator
from typing import Any

from dlperf_study.dataset.cells import is_missing
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.comparison import BACKGROUND_LOAD, EQUAL, NOT_DISTINGUISHABLE, RATIOS, TOO_FEW_RUNS
from dlperf_study.report.formatting import MOST_NAMED
from dlperf_study.report.macros import configuration_keys, short_names
from dlperf_study.report.sentences import ratio_sentences
from dlperf_study.report.sentences.names import Names, PageSentences
from dlperf_study.report.sentences.quality_sentences import no_conclusion_reason
from dlperf_study.report.sentences.serious_sentences import serious_sentences
from dlperf_study.report.tables.latex import latex_escaped

_CLAIMS = {"scaling": ratio_sentences.speedup_claims, "comparison": ratio_sentences.reference_claims}
#: So many configurations have a sentence each on what they reached; of more, the table has the numbers.
_MOST_RATES = 8
#: Of at most so many configurations all are named: who reads a paper has no page with the others.
_MOST_NAMED_ALL = 24


def results(dataset: Dataset) -> str:
    """Return the paragraph as LaTeX: how the ratios that the study asks for came out, else what was reached."""
    study = dataset.plan.study
    first = f"The study has \\studyfact{{{study}}}{{configurations}} measured configurations in"
    sentences = [f"{first} \\studyfact{{{study}}}{{runs}} completed runs.", *_answers(dataset)]
    return "\n".join(sentences) + "\n"


def _answers(dataset: Dataset) -> Iterator[str]:
    yield from _plain(serious_sentences(dataset))
    if nothing := no_conclusion_reason(dataset):
        yield from _plain([nothing])
    claims_of = [_CLAIMS[question](dataset) for question in dataset.plan.questions if question in _CLAIMS]
    if nothing or not any(claims_of):
        yield from _rates(dataset)
        return
    macros = _Macros(dataset)
    # The ratios of one question have other denominators than those of another.
    for claims in claims_of:
        decided = [claim for claim in claims if claim.word]
        most_named = len(claims) if len(claims) <= _MOST_NAMED_ALL else MOST_NAMED
        if len(decided) > ratio_sentences.MOST_CLAIMS:
            yield from _plain(ratio_sentences.claim_sentences(claims, most_named))
        else:
            yield from map(macros.sentence, decided)
            yield from _plain(ratio_sentences.undecided_sentences(claims, most_named))


def _plain(sentences: Iterable[str]) -> Iterator[str]:
    """Yield sentences of the report as LaTeX, without the marks of what a page shows in bold."""
    yield from map(latex_escaped, PageSentences(tuple(sentences)).sentences)


def _rates(dataset: Dataset) -> Iterator[str]:
    names, macros = Names(dataset), _Macros(dataset)
    for row in dataset.measured.head(_MOST_RATES).itertuples(index=False):
        name = latex_escaped(names.of_configuration(row))
        yield f"{name} trained at {macros.number(row, dataset.rate)}."


class _Macros:
    """The macros of the numbers of a study's configurations."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._names = configuration_keys(dataset) | short_names(dataset)

    def number(self, row: Any, column: str, kind: str = "measured") -> str:
        """Return the macro of a number; ``kind``: of all of it, or of its value or an end of its interval alone."""
        return f"\\{kind}{{{self._dataset.plan.study}}}{{{self._names[row.identity]}}}{{{column}}}"

    def sentence(self, claim: ratio_sentences.Claim) -> str:
        """Return what may be said of a ratio; a doubtful one has the words of the report."""
        if claim.is_doubtful:
            [sentence] = _plain([claim.sentence])
            return sentence
        name, comparison = latex_escaped(claim.name), latex_escaped(claim.comparison)
        ratio = f"{self._times(claim)}{self._efficiency(claim)}"
        rates = self._rates(claim)
        if claim.word == EQUAL:
            return f"{name} trained as fast {comparison} ({latex_escaped(claim.verdict)}): {ratio}, {rates}."
        if claim.word == NOT_DISTINGUISHABLE:
            both = f"{name} {comparison.replace('as ', 'and ', 1)}"
            ratio = "" if claim.is_vague else f"{ratio}, "
            return f"{both} can't be distinguished with these runs{claim.adjusted_for_others}: {ratio}{rates}."
        if claim.word in (TOO_FEW_RUNS, BACKGROUND_LOAD):
            both = f"{name} {comparison.replace('as ', 'and ', 1)}"
            return f"{both}: {ratio}, {rates}; no outcome, because {ratio_sentences.no_outcome_reason([claim])}."
        if claim.is_vague:
            [verdict] = _plain([claim.only_verdict])
            return f"{verdict}, {rates}."
        return f"{name} trained {self._times(claim)} as fast {comparison}{self._efficiency(claim)}, {rates}."

    def _times(self, claim: ratio_sentences.Claim) -> str:
        ratio = RATIOS[claim.role]
        low, high = (self.number(claim.row, ratio, f"measured{end}") for end in ("low", "high"))
        return f"{self.number(claim.row, ratio, 'measuredvalue')} times [{low}, {high}]"

    def _efficiency(self, claim: ratio_sentences.Claim) -> str:
        is_scaled = claim.role == "baseline" and claim.row.world_size != claim.other.world_size
        if not is_scaled or is_missing(claim.row.efficiency):
            return ""
        return f" (efficiency {self.number(claim.row, 'efficiency')})"

    def _rates(self, claim: ratio_sentences.Claim) -> str:
        """Return the two throughputs."""
        rate = self._dataset.rate
        return f"{self.number(claim.row, rate)} instead of {self.number(claim.other, rate)}"
