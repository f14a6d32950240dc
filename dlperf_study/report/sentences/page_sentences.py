"""What a page found: a few sentences made from the data, and under which conditions that was measured."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context

#: A reader who opens a page reads no more than these before the figure.
MOST_SENTENCES = 5


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
        items = "".join(f"<li>{escape(sentence)}</li>" for sentence in self.sentences)
        conditions = f'<p class="conditions">{escape(self.conditions)}</p>' if self.conditions else ""
        return f'<div class="findings"><ul>{items}</ul>{conditions}</div>'
