"""Parts of a page under their heading, and the links on it: to each part, to its files and to the runs of a number.

What has nothing to show is left out, and so is a heading above nothing.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Protocol, Self

from dlperf_study.core.paths import StudyPaths, is_building_report

#: The page with every run.
RUNS_FILE = "runs.html"
#: What a reader calls the files of each kind.
_LABELS = {"csv": "CSV", "tex": "LaTeX", "svg": "SVG", "pdf": "PDF"}
#: What a table looks like where no style sheet of the report is: in JupyterLab, whose own rules stripe and align cells.
_NOTEBOOK_STYLE = """<style>
:is(.jp-RenderedHTMLCommon, body) figure.table { margin: 0; }
:is(.jp-RenderedHTMLCommon, body) figure.table table { width: auto; margin: .4em 0;
  font-variant-numeric: tabular-nums; }
:is(.jp-RenderedHTMLCommon, body) figure.table tbody tr { background: none; }
:is(.jp-RenderedHTMLCommon, body) figure.table :is(td, th) { text-align: left; vertical-align: top; max-width: 32em;
  padding: .25em .4em; white-space: normal; }
:is(.jp-RenderedHTMLCommon, body) figure.table :is(td, th).number { text-align: right; }
:is(.jp-RenderedHTMLCommon, body) figure.table th.number[colspan="2"] { text-align: center; }
:is(.jp-RenderedHTMLCommon, body) figure.table :is(td.number, td.interval) { white-space: nowrap; }
:is(.jp-RenderedHTMLCommon, body) figure.table td.interval { padding-left: 0; }
:is(.jp-RenderedHTMLCommon, body) figure.table tr.group th { font-style: italic; font-weight: normal; max-width: none; }
:is(.jp-RenderedHTMLCommon, body) figure.table .pad::after { content: attr(data-pad); visibility: hidden;
  font-style: normal; }
:is(.jp-RenderedHTMLCommon, body) figure.table .unit { display: block; font-weight: normal; opacity: .7; }
:is(.jp-RenderedHTMLCommon, body) figure.table ul.notes { list-style: none; margin: 0; padding: 0; font-size: .9em;
  opacity: .8; }
:is(.jp-RenderedHTMLCommon, body) figure.table sup { position: static; vertical-align: super; line-height: 0;
  margin-left: .1em; font-size: .75em; }
</style>"""


def notebook_style() -> str:
    """Return the style of a table in a notebook that a person executes; nothing for a page, which has its own."""
    return "" if is_building_report() else _NOTEBOOK_STYLE


def anchor_link(anchor: str) -> str:
    """Return the link by which a reader gets the address of one element, shown while pointed at; none in a notebook."""
    if not is_building_report():
        return ""
    return f'<a class="anchor-link" href="#{anchor}" aria-label="link to this">#</a>'


def page_link(target: str, content: str) -> str:
    """Return HTML that leads to an anchor on a page of the report; no link in a notebook, next to which no page is."""
    return f'<a href="{target}">{content}</a>' if is_building_report() else content


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
        """Return the section, to be shown; while a report is built, write the files of all parts, also of hidden ones.

        A notebook that a person executes writes none: it may show a selection, or a page that the report does not have.
        """
        if not is_building_report():
            return self
        return Section(self.title, tuple(part.save(paths) for part in self.parts))

    def _repr_html_(self) -> str:
        content = "".join(part._repr_html_() for part in self.parts if not part.is_empty)
        if not content or not self.title:
            return content
        anchor = re.sub(r"\W+", "-", self.title.lower()).strip("-")
        return f'<section><h2 id="{anchor}">{escape(self.title)}{anchor_link(anchor)}</h2></section>{content}'
