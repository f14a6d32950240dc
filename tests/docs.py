"""The pages for people, as the tests read them."""

import re
from functools import cache
from pathlib import Path
from textwrap import dedent

from dlperf_study.core.paths import PROJECT

DOCS = PROJECT / "docs"
AT_THE_TOP = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "outputs/README.md")
PAGES = sorted([*DOCS.glob("*.md"), *(PROJECT / name for name in AT_THE_TOP)])


def blocks(page: Path, language: str) -> list[str]:
    """Return the content of the fenced blocks of a language, also of those in lists."""
    text = page.read_text(encoding="utf-8")
    return [dedent(block) for block in re.findall(rf"^ *```{language}\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)]


@cache
def words(page: str) -> set[str]:
    """Return everything a page sets as code."""
    return set(re.findall(r"`([^`\n]+)`", (PROJECT / page).read_text(encoding="utf-8")))


def first_cells(page: str, heading: str) -> list[str]:
    """Return the words in code in the first column of the table under a heading."""
    section = (PROJECT / page).read_text(encoding="utf-8").split(f"{heading}\n", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert table
    rows = table.group().splitlines()[2:]
    return [word for row in rows for word in re.findall(r"`([^`]+)`", row.split("|")[1])]
