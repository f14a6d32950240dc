"""What is known of a published source: who printed it, where, under which licence, and what holds for its numbers."""

from functools import cache
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from dlperf_study.columns import COLUMNS, Table, columns_of
from dlperf_study.columns.published import NUMBER, PLACE
from dlperf_study.errors import PublishedError, StudyFileError
from dlperf_study.spelling import unknown
from dlperf_study.study.configuration import Scalar
from dlperf_study.study.problems import Section, validate
from dlperf_study.study.published_sources import SOURCES_FOLDER, source_names
from dlperf_study.study.strict_yaml import read_mapping, shown

#: What may hold for a source, for a table or for one number: the nearest counts.
FACTS = (
    "scope",
    "role",
    "estimator",
    *(c.name for c in columns_of(Table.PUBLISHED) if c not in (*PLACE, *NUMBER) and c.name != "repetition"),
)


def _known(facts: dict[str, Scalar]) -> dict[str, Scalar]:
    """Refuse a fact that is no column, or a text where the column holds numbers."""
    for name, value in facts.items():
        if name not in FACTS:
            raise ValueError(unknown("unknown fact", name, "facts", FACTS))
        if COLUMNS[name].is_number == isinstance(value, str):
            raise ValueError(f"{name} is {value!r}; it must be a {'number' if COLUMNS[name].is_number else 'text'}")
    return facts


Facts = Annotated[dict[str, Any], AfterValidator(_known)]
Text = Annotated[str, Field(min_length=1)]


class TableSection(Section):
    """One table of a source: its title, the head of its row labels, and what holds for all its numbers."""

    title: Text
    rows: Text
    facts: Facts = Field(default={})


class Source(Section):
    """One publication, with its tables by name."""

    title: Text
    authors: Text
    url: Text
    licence: Text
    retrieved: Text
    year: int | None = None
    differs: str = ""
    facts: Facts = Field(default={})
    tables: dict[str, TableSection]


_KEYS = {
    "": tuple(Source.model_fields),
    "tables": tuple(TableSection.model_fields),
}


@cache
def read_source(name: str) -> Source:
    """Return what is known of a source.

    Raises:
        PublishedError: there is no such source, or its file can't be read as one.

    """
    if name not in source_names():
        raise PublishedError(unknown("there is no published source", name, "sources", source_names()))
    path = SOURCES_FOLDER / f"{name}.yaml"
    try:
        return validate(Source, read_mapping(path), shown(path), _KEYS)
    except StudyFileError as error:
        raise PublishedError(str(error)) from None
