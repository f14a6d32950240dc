"""Parts of a page under their heading, and links to them, their files and runs."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Protocol, Self

from dlperf_study.core.paths import StudyPaths, is_building_report
from dlperf_study.report.formatting import text_if

RUNS_FILE = "runs.html"
_LABELS = {"csv": "CSV", "tex": "LaTeX", "svg": "SVG", "pdf": "PDF"}
#: What a table looks like where no style sheet of the report is: in JupyterLab, whose own rules stripe and align cells.
_NOTEBOOK_STYLE = (Path(__file__).parent / "templates" / "notebook.html").read_text(encoding="utf-8").strip()


def notebook_style() -> str:
    """Return the style of a table in a notebook; pages have theirs."""
    return text_if(not is_building_report(), _NOTEBOOK_STYLE)


def anchor_link(anchor: str) -> str:
    """Return a link to an element's own address; none in a notebook."""
    return text_if(is_building_report(), f'<a class="anchor-link" href="#{anchor}" aria-label="link to this">#</a>')


def page_link(target: str, content: str) -> str:
    """Return a link to another page; plain text in a notebook."""
    if is_building_report():
        return f'<a href="{target}">{content}</a>'
    return content


def downloads(folder: str, name: str, *kinds: str, of: str = "") -> str:
    """Return links to the files of one table or figure."""
    links = " ".join(f'<a href="{folder}/{name}.{kind}" download>{_LABELS[kind]}</a>' for kind in kinds)
    return f' <span class="downloads">{text_if(of, f" {of}:")}{links}</span>'


def evidence_anchor(configuration_id: str) -> str:
    """Return the anchor of a configuration's first run."""
    return f"run-{configuration_id.rpartition('-')[2]}"


def evidence_link(anchor: str, number: str) -> str:
    """Return a number, as HTML, linked to its runs."""
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
    """Tables and figures under one heading, if it has a ``title``."""

    title: str
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, title: str, *parts: Part | Iterable[Part]) -> "Section":
        """Return a section of single and several parts."""
        flat: list[Part] = []
        for part in parts:
            flat.extend(part) if isinstance(part, Iterable) else flat.append(part)
        return cls(title, tuple(flat))

    def save(self, paths: StudyPaths) -> "Section":
        """Write the files of all parts if a report is built."""
        if not is_building_report():
            return self
        return Section(self.title, tuple(part.save(paths) for part in self.parts))

    def _repr_html_(self) -> str:
        shown = [part for part in self.parts if not part.is_empty]
        if not shown and not is_building_report():
            # A page leaves out a section without results; a cell has a reader who waits for it.
            shown = list(self.parts)
        content = "".join(part._repr_html_() for part in shown)
        if not content or not self.title:
            return content
        anchor = re.sub(r"\W+", "-", self.title.lower()).strip("-")
        return f'<section><h2 id="{anchor}">{escape(self.title)}{anchor_link(anchor)}</h2></section>{content}'
