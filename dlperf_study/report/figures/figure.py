"""A figure of the report: a drawing with its caption, as SVG and PDF."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure as Drawing

from dlperf_study.paths import StudyPaths
from dlperf_study.report.figures.compact_svg import compact_svg, data_uri
from dlperf_study.report.figures.style import publication_style
from dlperf_study.report.links import anchor_link, downloads
from dlperf_study.writing import naming

#: Dates would make two renderings of one dataset differ.
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": "dlperf_study"},
    "pdf": {"CreationDate": None, "Creator": "dlperf_study", "Producer": "matplotlib"},
}
#: Where a file of each kind has its caption.
_DESCRIPTION = {"svg": "Description", "pdf": "Subject"}
#: A page is read from further away than a printed column.
_SCREEN_SCALE = 1.35
_CSS_PIXELS_PER_INCH = 96


@dataclass(frozen=True)
class Figure:
    """A captioned figure; without a drawing, ``empty`` says why there is none.

    ``page_caption``: what a page shows of the caption, because it says the rest once; empty: all of it. The files keep
    the whole caption. ``alt``: the numbers of the figure, for who can't see it; empty: its title. ``is_saved``:
    a page can lead to its files.
    """

    name: str
    title: str
    caption: str
    drawing: Drawing | None
    empty: str = ""
    page_caption: str = ""
    alt: str = ""
    is_saved: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return self.drawing is None

    def save(self, paths: StudyPaths) -> "Figure":
        """Write the figure as SVG and PDF into the study's figures; return it, to be shown."""
        if self.drawing is not None:
            paths.figures.mkdir(parents=True, exist_ok=True)
            svg_file, pdf_file = (paths.figures / f"{self.name}.{kind}" for kind in _METADATA)
            with naming(svg_file):
                svg_file.write_bytes(self.svg())
            with _layout_kept(self.drawing):
                self.write_pdf(pdf_file)
        saved = replace(self, is_saved=True)
        # To lay it out again would take seconds.
        vars(saved)["_svg"] = self._svg
        return saved

    def write_pdf(self, file: Path) -> None:
        """Write the drawing, which there must be, as PDF."""
        assert self.drawing is not None
        with naming(file):
            _write(self.drawing, file, "pdf", self._described)

    @property
    def _described(self) -> str:
        return f"{self.title}. {self.caption}"

    def svg(self) -> bytes:
        """Return the drawing as SVG, the same bytes for the same dataset."""
        return self._svg

    # It is saved and shown, and to lay out a large drawing takes seconds.
    @cached_property
    def _svg(self) -> bytes:
        buffer = io.BytesIO()
        if self.drawing is not None:
            _write(self.drawing, buffer, "svg", self._described)
        return compact_svg(buffer.getvalue().decode()).encode()

    def _repr_html_(self) -> str:
        anchor = f"figure-{self.name}"
        files = downloads("figures", self.name, "svg", "pdf") if self.is_saved and not self.is_empty else ""
        text = escape(self.page_caption or self.caption)
        caption = f"<b>{escape(self.title)}.</b> {text}{anchor_link(anchor)}{files}"
        content = f'<p class="nothing">{escape(self.empty)}</p>'
        if self.drawing is not None:
            # As an image of its own: inline SVGs on one page would share their element ids.
            width = round(self.drawing.get_figwidth() * _CSS_PIXELS_PER_INCH * _SCREEN_SCALE)
            content = (
                f'<img width="{width}" alt="{escape(self.alt or self.title)}" src="{data_uri(self.svg().decode())}">'
            )
        return f'<figure id="{anchor}">{content}<figcaption>{caption}</figcaption></figure>'


@contextmanager
def _layout_kept(drawing: Drawing) -> Iterator[None]:
    """Draw as the drawing was laid out the last time."""
    engine = drawing.get_layout_engine()
    drawing.set_layout_engine("none")
    yield
    drawing.set_layout_engine(engine)


def _write(drawing: Drawing, target: Path | io.BytesIO, kind: str, described: str) -> None:
    metadata = {**_METADATA[kind], _DESCRIPTION[kind]: described}
    with publication_style():
        drawing.savefig(target, format=kind, metadata=metadata)
