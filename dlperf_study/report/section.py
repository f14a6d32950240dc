"""Parts of a page under their heading, and the links on it: to each part, to its files and to the runs of a number.

What has nothing to show is left out, and so is a heading above nothing.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Protocol, Self

from dlperf_study.core.paths import StudyPaths

#: The page with every run.
RUNS_FILE = "runs.html"
#: What a reader calls the files of each kind.
_LABELS = {"csv": "CSV", "tex": "LaTeX", "svg": "SVG", "pdf": "PDF"}


def anchor_link(anchor: str) -> str:
    """Return the link by which a reader gets the address of one element; it is shown while pointed at."""
    return f'<a class="anchor-link" href="#{anchor}" aria-label="link to this">#</a>'


def downloads(folder: str, name: str, *kinds: str, of: str = "") -> str:
    """Return links to the files of one table or figure, after ``of`` what; the folder is next to the page."""
    links = []
    for kind in kinds:
        links.append(f'<a href="{folder}/{name}.{kind}" download>{_LABELS[kind]}</a>')
    label = f" {of}:" if of else ""
    return f' <span class="downloads">{label}{" ".join(links)}</span>'


def evidence_anchor(identity: str) -> str:
    """Return the name of the first run of a configuration on the page of runs: the digest that ends its identity."""
    return f"run-{identity.rpartition('-')[2]}"


def evidence_link(anchor: str, number: str) -> str:
    """Return a number that leads to the runs it was computed from; ``number`` is HTML."""
    return f'<a href="{RUNS_FILE}#{anchor}">{number}</a>'


class Part(Protocol):
    """A table or a figure."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""

    def save(self, paths: StudyPaths) -> Self:
        """Write its files, and return it."""

    def _repr_html_(self) -> str: ...


@dataclass(frozen=True)
class Section:
    """Tables and figures under one heading; without a ``title`` they have none."""

    title: str
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, title: str, *parts: Part | Iterable[Part]) -> "Section":
        """Return a section of single parts and of several, as they come."""
        flat: list[Part] = []
        for part in parts:
            flat.extend(part) if isinstance(part, Iterable) else flat.append(part)
        return cls(title, tuple(flat))

    def save(self, paths: StudyPaths) -> "Section":
        """Write the files of all parts, also of those that are not shown; return the section, to be shown."""
        return Section(self.title, tuple(part.save(paths) for part in self.parts))

    def _repr_html_(self) -> str:
        content = "".join(part._repr_html_() for part in self.parts if not part.is_empty)
        if not content or not self.title:
            return content
        anchor = re.sub(r"\W+", "-", self.title.lower()).strip("-")
        return f'<section><h2 id="{anchor}">{escape(self.title)}{anchor_link(anchor)}</h2></section>{content}'
