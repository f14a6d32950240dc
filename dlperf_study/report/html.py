"""Executed notebooks to pages: one file each, with its style and figures in it and no script at all."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dlperf_study import __version__

TEMPLATES = Path(__file__).parent / "templates"
TEMPLATE = "study"


@dataclass(frozen=True)
class Page:
    """One page of the report and the notebook it is made from."""

    notebook: str
    title: str
    file: str

    @classmethod
    def answering(cls, question: str) -> "Page":
        """Return the page that answers one of the questions a study may ask."""
        return cls(question, question.capitalize(), f"{question}.html")


@dataclass(frozen=True)
class Masthead:
    """What stands above every page of one study."""

    name: str
    title: str
    quick: bool


def page_html(notebook: Path, page: Page, pages: Sequence[Page], masthead: Masthead) -> str:
    """Return the page of one executed notebook; the code is in it, hidden until it is asked for."""
    # Reading a study needs no exporter, and importing this one takes two seconds.
    from nbconvert.exporters import HTMLExporter

    exporter = HTMLExporter(template_name=TEMPLATE, extra_template_basedirs=[str(TEMPLATES)])
    exporter.exclude_anchor_links = True
    html, _ = exporter.from_filename(str(notebook), resources=_resources(page, pages, masthead))
    return str(html)


def _resources(page: Page, pages: Sequence[Page], masthead: Masthead) -> dict[str, Any]:
    return {
        "page": asdict(page),
        "pages": [asdict(other) for other in pages],
        "study": asdict(masthead),
        "style": (TEMPLATES / TEMPLATE / "page.css").read_text(encoding="utf-8"),
        "version": __version__,
    }
