"""A figure of the report: a drawing for each width with one caption, as SVG and PDF."""

import io
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from os import PathLike
from pathlib import Path
from typing import IO, Any

from matplotlib.figure import Figure as Drawing

from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.wording import in_sentence
from dlperf_study.core.writing import naming
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report.figures.style import COLUMN, PAGE, WIDTHS, Width, compact_svg, data_uri, publication_style
from dlperf_study.report.formatting import MISSING, html_text, text_if
from dlperf_study.report.say import captions
from dlperf_study.report.section import anchor_link, downloads
from dlperf_study.report.series import Series, devices_label, joined, short_labels
from dlperf_study.report.tables.table import Cell, Heading, Table
from dlperf_study.report.tables.table_builders import measured_column

MOST_CONFIGURATIONS = 30


def alt_text(
    dataset: Dataset, names: Sequence[str], title: str, lines: Sequence[Series], drawn: Collection[str]
) -> str:
    """Return a figure's title and the numbers of the drawn configurations."""
    columns, configurations = [measured_column(dataset, name) for name in names], list[str]()
    for line, label in zip(lines, short_labels(list(lines)), strict=True):
        for configuration_id in filter(drawn.__contains__, line.configuration_ids):
            if len(configurations) < MOST_CONFIGURATIONS:
                row = dataset.configuration_rows[configuration_id]
                values = [(column.heading, column.cell(row)) for column in columns]
                measured = ((heading, cell) for heading, cell in values if cell.text != MISSING)
                configurations.append(f"{joined(label, devices_label(row))}: {_printed(measured)}")
    return _titled(title, configurations, len(drawn))


def alt_text_of_table(title: str, table: Table) -> str:
    """Return a figure's title and the rows of its table."""
    rows = [_printed(zip(table.headings, row, strict=True)) for row in table.rows[:MOST_CONFIGURATIONS]]
    return _titled(title, rows, len(table.rows))


def _printed(values: Iterable[tuple[Heading, Cell]]) -> str:
    return ", ".join(f"{in_sentence(heading.label)} {cell.printed} {heading.unit}".rstrip() for heading, cell in values)


def _titled(title: str, shown: Sequence[str], total: int) -> str:
    more = text_if(total > len(shown), f"; and {total - len(shown)} more")
    return f"{title}.{text_if(shown, ' ' + '; '.join(shown) + more + '.')}"


#: Dates would make two renderings of one dataset differ.
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": "dlperf_study"},
    "pdf": {"CreationDate": None, "Creator": "dlperf_study", "Producer": "matplotlib"},
}
_DESCRIPTION = {"svg": "Description", "pdf": "Subject"}
#: A page is read from further away than a printed column.
_SCREEN_SCALE = 1.35
_CSS_PIXELS_PER_INCH = 96


#: Draws for one width; None where there is nothing to draw.
Draw = Callable[[Width], Drawing | None]


@dataclass(frozen=True)
class Figure:
    """A captioned figure for page and column; ``empty`` replaces a missing drawing.

    ``page_caption``: what a page shows of the caption, because it says the rest once; empty: all of it. The files keep
    the whole caption. ``alt``: the numbers of the figure, for who can't see it; empty: its title. ``is_saved``:
    a page can lead to its files.
    """

    name: str
    title: str
    caption: str
    draw: Draw | None
    empty: str = ""
    page_caption: str = ""
    alt: str = ""
    is_saved: bool = False
    #: A figure is saved and shown, and to lay out a large drawing takes seconds.
    _drawings: dict[Width, Drawing | None] = field(default_factory=dict, compare=False, repr=False)
    _svgs: dict[Width, bytes] = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return self.drawing is None

    @property
    def drawing(self) -> Drawing | None:
        """The drawing for a page."""
        return self.drawn(PAGE)

    def drawn(self, width: Width) -> Drawing | None:
        """Return the drawing for a width, or None."""
        if width not in self._drawings:
            with publication_style():
                drawing = self.draw(width) if self.draw else None
                if drawing is not None:
                    # Panels and texts are placed once: each file would take twice as long if it did so again.
                    engine = drawing.get_layout_engine()
                    assert engine is not None
                    engine.execute(drawing)
                    drawing.set_layout_engine(None)
            self._drawings[width] = drawing
        return self._drawings[width]

    def save(self, paths: StudyPaths) -> "Figure":
        """Write SVG and PDF of each width; return the figure."""
        if self.drawing is not None:
            paths.figures.mkdir(parents=True, exist_ok=True)
            for width in WIDTHS:
                svg_file = paths.figures / f"{self.name}{width.suffix}.svg"
                with naming(svg_file):
                    svg_file.write_bytes(self.svg(width))
                self.write_pdf(paths.figures, width)
        return replace(self, is_saved=True)

    def savefig(self, file: str | PathLike[str] | IO[bytes], **options: Any) -> None:
        """Write the page drawing like matplotlib; raises RecordError without one."""
        if self.drawing is None:
            raise RecordError(f"{self.title}: {self.empty}")
        with publication_style():
            self.drawing.savefig(file, **options)

    def write_pdf(self, folder: Path, width: Width) -> str:
        """Write the drawing as PDF into a folder; return the file name."""
        file = folder / f"{self.name}{width.suffix}.pdf"
        with naming(file):
            _write(self._required(width), file, "pdf", self._described)
        return file.name

    def svg(self, width: Width = PAGE) -> bytes:
        """Return the drawing as SVG: equal bytes for equal datasets."""
        if width not in self._svgs:
            buffer = io.BytesIO()
            _write(self._required(width), buffer, "svg", self._described)
            self._svgs[width] = compact_svg(buffer.getvalue().decode()).encode()
        return self._svgs[width]

    @property
    def _described(self) -> str:
        return f"{self.title}. {self.caption}"

    def _required(self, width: Width) -> Drawing:
        drawing = self.drawn(width)
        assert drawing is not None
        return drawing

    def __repr__(self) -> str:
        if self.is_empty:
            return f"{self.title}. {self.empty}"
        return self.alt or self.title

    def _repr_html_(self) -> str:
        anchor = f"figure-{self.name}"
        content = f'<p class="nothing">{html_text(self.empty)}</p>' if self.is_empty else self._picture()
        files = ""
        if self.is_saved and not self.is_empty:
            files = downloads("figures", self.name, "svg", "pdf")
            files += downloads("figures", f"{self.name}{COLUMN.suffix}", "svg", "pdf", of="column")
        on_page = escape(self.page_caption or self.caption)
        caption = f"<b>{escape(self.title)}.</b> {on_page}{anchor_link(anchor)}{files}"
        return f'<figure id="{anchor}">{content}<figcaption>{caption}</figcaption></figure>'

    def _picture(self) -> str:
        """Return both drawings; the browser shows the fitting one."""
        # As images of their own: inline SVGs on one page would share their element ids.
        on_phone, on_desktop = (data_uri(self.svg(width).decode()) for width in (COLUMN, PAGE))
        pixels = round(PAGE.inches * _CSS_PIXELS_PER_INCH * _SCREEN_SCALE)
        return (
            f'<picture><source media="screen and (max-width: 40rem)" srcset="{on_phone.replace(" ", "%20")}">'
            f'<img width="{pixels}" style="max-width:100%;height:auto" alt="{escape(self.alt or self.title)}" '
            f'src="{on_desktop}"></picture>'
        )


def page_figure(
    name: str, draw: Draw | None, caption: str, page_caption: str, table: Table | None, *, is_empty: bool = False
) -> Figure:
    """Return a figure whose title and empty text are those of its name, and whose numbers are those of a table."""
    parts = captions()[f"figure-{name}"]
    alt = alt_text_of_table(parts["title"], table) if table else ""
    return Figure(name, parts["title"], caption, None if is_empty else draw, parts.get("empty", ""), page_caption, alt)


def _write(drawing: Drawing, target: Path | io.BytesIO, kind: str, described: str) -> None:
    metadata = {**_METADATA[kind], _DESCRIPTION[kind]: described}
    with publication_style():
        drawing.savefig(target, format=kind, metadata=metadata)
