"""What a page found: a few sentences made from the data, and under which conditions that was measured."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.formatting import html_text

#: A reader who opens a page reads no more than these before the figure.
MOST_SENTENCES = 5
#: Around the part of a sentence that a reader looks for; in no name and no number.
_BEGIN, _END = "\x02", "\x03"
_INTERVAL = re.compile(r"\[[^\[\]]*\]")


def answer(phrase: str) -> str:
    """Mark what a reader looks for first: a ratio or a share with its interval, a verdict, or that there is none.

    A page shows it in bold.
    """
    return f"{_BEGIN}{phrase}{_END}"


def _unbroken(interval: re.Match[str]) -> str:
    """Return an interval that no line breaks."""
    return interval[0].replace(" ", "\N{NO-BREAK SPACE}")


#: The answer where there is none.
NOTHING = answer("Nothing can be concluded")


@dataclass(frozen=True)
class PageSentences:
    """The sentences that open a page, the most important first; ``conditions``: one line on what they hold for.

    ``marked``: the sentences, with the marks of ``answer``.
    """

    marked: tuple[str, ...]
    conditions: str = ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences as text."""
        return tuple(sentence.replace(_BEGIN, "").replace(_END, "") for sentence in self.marked)

    @classmethod
    def of(cls, dataset: Dataset, sentences: Iterable[str]) -> "PageSentences":
        """Return the first sentences, each once, with the conditions of the study."""
        distinct = dict.fromkeys(filter(None, sentences))
        return cls(tuple(distinct)[:MOST_SENTENCES], context.page_conditions(dataset))

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{html_text(_INTERVAL.sub(_unbroken, sentence))}</li>" for sentence in self.marked)
        items = items.replace(_BEGIN, "<b>").replace(_END, "</b>")
        conditions = f'<p class="conditions">{escape(self.conditions)}</p>' if self.conditions else ""
        return f'<div class="findings"><ul>{items}</ul>{conditions}</div>'
