"""What a page found: a few sentences made from the data, and under which conditions that was measured."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context

#: A reader who opens a page reads no more than these before the figure.
MOST_SENTENCES = 5
#: What a reader looks for first: ratios and shares with their intervals, counts of verdicts, or that there are none.
_ANSWER = re.compile(
    r"[\d.]+ times \[[^]]+]|\S+\u202f% \[[^]]+]|^\d+ of \d+ .*? (?:baseline|reference)"
    r"|^Nothing can be concluded|^None of \d+ configurations is shown to be faster or slower"
)


@dataclass(frozen=True)
class PageSentences:
    """The sentences that open a page, the most important first; ``conditions``: one line on what they hold for."""

    sentences: tuple[str, ...]
    conditions: str = ""

    @classmethod
    def of(cls, dataset: Dataset, sentences: Iterable[str]) -> "PageSentences":
        """Return the first sentences, each once, with the conditions of the study."""
        distinct = dict.fromkeys(filter(None, sentences))
        return cls(tuple(distinct)[:MOST_SENTENCES], context.page_conditions(dataset))

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{_with_marks(escape(sentence))}</li>" for sentence in self.sentences)
        conditions = f'<p class="conditions">{escape(self.conditions)}</p>' if self.conditions else ""
        return f'<div class="findings"><ul>{items}</ul>{conditions}</div>'


def _with_marks(sentence: str) -> str:
    return _ANSWER.sub(lambda match: f"<b>{match[0]}</b>", sentence)
