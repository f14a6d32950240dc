"""What is known of published sources: who published what, where, and how it was measured."""

from collections.abc import Iterator

from dlperf_study.analysis.dataset import Dataset
from dlperf_study.analysis.published import Published
from dlperf_study.columns import COLUMNS, PRODUCTS
from dlperf_study.report.names import listed
from dlperf_study.report.published_lines import NOTHING_NAMED
from dlperf_study.report.table import Cell, Heading, Table

#: What a source may state of how it measured.
_STATED = ("mode", "device_name", "hardware", "software", "link")


def sources(dataset: Dataset) -> Table:
    """Return what is known of each source, one below the other: however many there are, they fit a page."""
    published = Published.read(dataset.plan.published)
    facts = [(source.title, fact) for name, source in published.sources.items() for fact in _facts(published, name)]
    rows = tuple((Cell(word), Cell(said)) for _, (word, said) in facts)
    groups = tuple(title for title, _ in facts)
    name, caption = "published-sources", "Who published what, where, and how it was measured."
    headings = (Heading(""), Heading(""))
    return Table(name, "Published sources", caption, headings, rows, empty=NOTHING_NAMED, groups=groups)


def hardware(published: Published) -> str:
    """Return the sentence on what each source ran on; empty without a source."""
    places = [
        f"{source.title}: {_levels(published, name, 'hardware') or 'not stated'}"
        for name, source in published.sources.items()
    ]
    return f"Published on {'; '.join(places)}." if places else ""


def differences(published: Published) -> Iterator[str]:
    """Yield what a reader must know of a source before comparing."""
    yield from (f"{source.title}: {source.differs}" for source in published.sources.values() if source.differs)


def _facts(published: Published, name: str) -> Iterator[tuple[str, str]]:
    """Yield what a source states, and at last what it does not."""
    source = published.sources[name]
    known = {COLUMNS[fact].label: _levels(published, name, fact) for fact in (*_STATED, "estimator")}
    facts = {
        "Authors": source.authors,
        "Year": str(source.year or ""),
        "Page": source.url.removeprefix("https://"),
        "Licence": source.licence,
        "Retrieved": source.retrieved,
        **known,
        COLUMNS["inferred"].label: _inferred(published, name),
        "To know": source.differs,
    }
    unsaid = ["Year"] * (not source.year) + [COLUMNS[fact].label for fact in _STATED if not known[COLUMNS[fact].label]]
    yield from ((word, said) for word, said in facts.items() if said)
    if unsaid:
        yield "Not stated", listed([word.lower() for word in unsaid])


def _inferred(published: Published, name: str) -> str:
    """Return the columns whose values a source does not state, but those that are products of others."""
    levels = (level.split(", ") for level in _levels(published, name, "inferred").split(" / "))
    kept = (", ".join(column for column in level if column not in PRODUCTS) for level in levels)
    return " / ".join(dict.fromkeys(filter(None, kept)))


def _levels(published: Published, name: str, column: str) -> str:
    ours = published.cells[(published.cells["source"] == name) & (published.cells["role"] == "result")]
    return " / ".join(str(value) for value in dict.fromkeys(ours[column].dropna()))
