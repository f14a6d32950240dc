"""A part of a page under its own heading: what has nothing to show is left out, and so is a heading above nothing."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Protocol, Self

from dlperf_study.paths import StudyPaths
from dlperf_study.report.links import anchor_link


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
