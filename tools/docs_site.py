"""Hooks of MkDocs, by which the pages of the repository are a site as they are: `make docs`.

Pages link to each other, and to files, as GitHub follows links: relative to their own folder. A page or file outside of
docs/ that one of them links to becomes part of the site, and its links lead to its place there.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
DOCS = "docs/"
#: The pages outside of docs/ by their path in the repository, and where the site has them.
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "outputs/README.md": "outputs.md",
    "tests/golden_study/README.md": "golden-study.md",
}
#: Those that a page leads to, and no shelf.
NOT_ON_A_SHELF = ("SECURITY.md", "tests/golden_study/README.md")
_PATHS = {place: path for path, place in PAGES.items()}
#: The style of tables, and by what the search works where a page is opened as a file; with their places in the site.
ASSETS = {"tools/docs_site.css": "assets/docs_site.css", "tools/iframe-worker.js": "assets/iframe-worker.js"}
_LINK = re.compile(r"\]\((?!https?://|#)([^)\s#]+)(#[^)\s]*)?\)")
#: A comment directly above a table, which Python's Markdown would take as its first line.
_COMMENT_ABOVE_TABLE = re.compile(r"^(<!--.*-->)\n(?=\|)", re.MULTILINE)


def place_of(path: str) -> str:
    """Return where the site has a file of the repository."""
    return PAGES.get(path) or (path.removeprefix(DOCS) if path.startswith(DOCS) else f"files/{path}")


def path_of(place: str) -> str:
    """Return which file of the repository a page of the site is."""
    return _PATHS.get(place) or DOCS + place


def linked_from(path: str) -> Iterator[str]:
    """Yield the files of the repository to which a page links."""
    for link, _ in _LINK.findall((PROJECT / path).read_text(encoding="utf-8")):
        yield _target(path, link)


def site_text(text: str, path: str) -> str:
    """Return the text of a page with links that lead to the places of the site."""
    folder = os.path.dirname(place_of(path)) or "."

    def replaced(match: re.Match[str]) -> str:
        place = os.path.relpath(place_of(_target(path, match[1])), folder)
        return f"]({place}{match[2] or ''})"

    return _COMMENT_ABOVE_TABLE.sub(r"\1\n\n", _LINK.sub(replaced, text))


def _target(path: str, link: str) -> str:
    return os.path.normpath(os.path.join(os.path.dirname(path), link))


def on_config(config: Any) -> None:
    """Give headings the addresses that GitHub gives them."""
    from pymdownx.slugs import slugify

    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages outside of docs/, and the files to which pages link."""
    for path, place in ASSETS.items():
        _add(files, config, path, place)
    for path, place in PAGES.items():
        _add(files, config, path, place, is_on_shelf=path not in NOT_ON_A_SHELF)
    for page in files.documentation_pages():
        for path in linked_from(path_of(page.src_uri)):
            if files.get_file_from_path(place_of(path)) is None and (PROJECT / path).is_file():
                _add(files, config, path, place_of(path))
    return files


def _add(files: Any, config: Any, path: str, place: str, is_on_shelf: bool = False) -> None:
    from mkdocs.structure.files import File, InclusionLevel

    inclusion = InclusionLevel.INCLUDED if is_on_shelf else InclusionLevel.NOT_IN_NAV
    files.append(File.generated(config, place, abs_src_path=str(PROJECT / path), inclusion=inclusion))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let the links of a page lead to the places of the site."""
    return site_text(markdown, path_of(page.file.src_uri))
