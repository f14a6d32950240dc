"""In words: why a configuration of ours is not next to a published number, and what differs where one is."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dlperf_study.analysis.same_question import Difference, Match, SameQuestion
from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.formatting import is_missing, level_name, listed, listed_columns
from dlperf_study.study.configuration import PARAMETERS

NO_CONFIGURATION = "the study has no configuration"
#: What need not be the same, but is said where it is known of both.
_NAMED = ("device_name", "link")


def why_no_match(match: Match, common: Sequence[Difference] = ()) -> tuple[str, ...]:
    """Return why nothing of ours is next to a published number: in what the most similar configuration differs.

    ``common``: what all such configurations of a table differ in, which is apart from the rest.
    """
    if not match.differences:
        return (NO_CONFIGURATION,)
    further = [difference for difference in match.differences if difference not in common]
    reason = f"no configuration answers the same question; the most similar differs in {_listed(common or further)}"
    return (reason, f"and also in {_listed(further)}") if common and further else (reason,)


def common_differences(matches: Iterable[Match]) -> list[Difference]:
    """Return what the most similar configurations of all published numbers without one of ours differ in."""
    unanswered = [match.differences for match in matches if not match.identities]
    first = unanswered[0] if unanswered else ()
    return [difference for difference in first if all(difference in differences for differences in unanswered)]


def _listed(differences: Iterable[Difference]) -> str:
    """Return differences as a sentence lists them: ``device (published GPU, ours CPU) and batch per device (…)``."""
    parts = []
    for difference in differences:
        ours = "not known" if difference.ours is None else level_name(difference.name, difference.ours)
        label = COLUMNS[difference.name].words
        parts.append(f"{label} (published {level_name(difference.name, difference.published)}, ours {ours})")
    return listed(parts)


def why_unanswered(matches: Iterable[Match]) -> str:
    """Return the sentence on why published numbers have nothing of ours next to them; empty if all have."""
    unanswered = [match for match in matches if not match.identities]
    if not unanswered:
        return ""
    counts = Counter(difference.name for match in unanswered for difference in match.differences)
    if not counts:
        return f"{NO_CONFIGURATION.capitalize()}."
    common = [name for name in counts if counts[name] == len(unanswered)]
    further = listed_columns(name for name in counts if name not in common)
    if not common:
        return f"The most similar of ours differs from each of these in one or more of {further}."
    differing = listed_columns(common) + (f"; from some also in {further}" if further else "")
    return f"The most similar of ours differs from {'all of these' if len(unanswered) > 1 else 'it'} in {differing}."


def differs_in(dataset: Dataset, number: Any, row: Any, match: Match) -> str:
    """Return what a reader must know of a published number and the row of ours that answers its question.

    These are devices, link and versions, where they are known of both, and what its source leaves open.
    """
    parts = [*_named(dataset, number, row), *_left_open(row, match)]
    return f"the same question, but {'; '.join(parts)}" if parts else ""


def _named(dataset: Dataset, number: Any, row: Any) -> Iterator[str]:
    runs = context.completed_runs(dataset)
    runs = runs[runs["identity"] == row.identity]
    for name in _NAMED:
        published, ours = getattr(number, name), context.levels(runs[name])
        if len(runs) and not is_missing(published) and ours != published:
            yield f"{COLUMNS[name].words}: published {published}, ours {ours}"
    if len(runs) and not is_missing(number.software):
        yield f"software: published {number.software}, ours {context.versions(runs)}"


def _left_open(row: Any, match: Match) -> Iterator[str]:
    """Yield what the source does not state and ours does not have by default; always where its images come from."""
    for name in match.unstated:
        level = getattr(row, name, None)
        if name == "data_source" or (name in PARAMETERS and level != PARAMETERS[name].default):
            yield f"its source does not state {COLUMNS[name].words}, ours {level_name(name, level)}"


def why_unmatched(question: SameQuestion) -> dict[str, str]:
    """Return, by identity, why a configuration of ours is next to no published number."""
    reasons = {}
    for identity, differences in question.unmatched().items():
        reasons[identity] = f"the most similar published number differs in {_listed(differences)}"
    return reasons
