"""The site of the pages: on five shelves, complete, with links that lead somewhere and a search without a server."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from dlperf_study.core.paths import PROJECT
from tests.docs import DOCS
from tools.docs_site import NOT_ON_A_SHELF, PAGES, path_of, site_text

SHELVES = ["Start", "How to", "Reference", "Background", "Develop"]
NAV: list[dict[str, list[dict[str, str]]]] = yaml.safe_load((PROJECT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
#: The pages of each shelf by their path in the repository.
ON_SHELVES = {
    shelf: [path_of(place) for entry in pages for place in entry.values()]
    for part in NAV
    for shelf, pages in part.items()
}


def build(project: Path, site: Path) -> "subprocess.CompletedProcess[str]":
    # With `--quiet` warnings are not counted, and nothing is strict.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    return subprocess.run(command, cwd=project, capture_output=True, text=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = build(PROJECT, folder)
    assert built.returncode == 0, built.stderr
    return folder


def test_every_page_is_on_one_shelf():
    assert list(ON_SHELVES) == SHELVES
    pages = {str(page.relative_to(PROJECT)) for page in DOCS.rglob("*.md")} | set(PAGES)
    assert sorted(path for paths in ON_SHELVES.values() for path in paths) == sorted(pages - set(NOT_ON_A_SHELF))


@pytest.mark.parametrize(
    ("path", "link", "place"),
    [
        ("README.md", "docs/gpu.md#install", "gpu.md#install"),
        ("docs/clusters.md", "../README.md#install", "index.md#install"),
        ("docs/measured/h100.md", "../../params/studies/one_gpu.yaml", "../files/params/studies/one_gpu.yaml"),
        ("outputs/README.md", "../docs/columns.md", "columns.md"),
        ("docs/gpu.md", "#install", "#install"),
        ("docs/install.md", "https://docs.astral.sh/uv", "https://docs.astral.sh/uv"),
    ],
)
def test_a_link_leads_to_its_place_in_the_site(path, link, place):
    assert site_text(f"[words]({link})", path) == f"[words]({place})"


@pytest.mark.needs("material")
def test_the_site_is_complete_and_asks_no_server_for_anything(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(NAV) * 5
    loaded = {
        part for page in pages for part in re.findall(r'<(?:script|link|img)[^>]+"https?://[^"]+"', page.read_text())
    }
    assert loaded == set()
    assert (site / "files" / "locks" / "main.txt").is_file()


@pytest.mark.needs("material")
@pytest.mark.parametrize("link", ["no-such-page.md", "gpu.md#no-such-heading", "../no-such-file.txt"])
def test_a_link_that_leads_nowhere_fails_the_build(link, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    for name in ("docs", "tools", "outputs/README.md", "tests/golden_study/README.md", "mkdocs.yml"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (PROJECT / name).is_dir() else shutil.copy)(PROJECT / name, project / name)
    for entry in PROJECT.iterdir():
        if not (project / entry.name).exists():
            (project / entry.name).symlink_to(entry)
    with (project / "docs" / "paper.md").open("a", encoding="utf-8") as page:
        page.write(f"\n[words]({link})\n")
    built = build(project, tmp_path / "site")
    assert built.returncode == 1
    assert link.rpartition("/")[2] in built.stderr


@pytest.mark.needs("material")
def test_the_search_works_where_a_page_is_opened_as_a_file(site, chromium: Any):
    with chromium.new_context(offline=True) as context:
        page = context.new_page()
        page.goto((site / "measured" / "h100.html").as_uri())
        page.click("input[name=query]")
        page.keyboard.type("NCCL")
        first_result = page.locator(".md-search-result__item h1").first
        first_result.wait_for()
        titles = page.locator(".md-search-result__item h1").all_inner_texts()
    assert "GPUs" in titles
