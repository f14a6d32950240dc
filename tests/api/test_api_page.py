"""The page on Python: its code runs from top to bottom, in the order in which a reader finds it."""

from pathlib import Path
from typing import Any

import matplotlib
import pytest

import dlperf_study
from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from tests.docs import DOCS, blocks
from tests.evidence_factory import Planned, Recipe, configuration, write_study
from tests.logs.ingest.conftest import folder, small_archive, write_log

__all__ = ["folder", "small_archive", "write_log"]

PAGE = DOCS / "notebooks.md"


def write_measured(name: str, recipe: Recipe) -> None:
    planned = []
    for framework in ("paddle_collective", "torch_ddp"):
        one, two = (configuration(framework=framework, devices_per_node=count) for count in (1, 2))
        planned += [Planned(one, recipe, baseline=one), Planned(two, recipe, baseline=one)]
    paths = StudyPaths.of(name)
    write_study(paths, planned).changed(sections=("scaling",)).write(paths.plan_file)


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two studies and a folder of logs, as the page names them."""
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path / "outputs"))
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    write_measured("quickstart", Recipe())
    write_measured("frameworks", Recipe(exposed_communication_seconds=0.05))


@pytest.mark.usefixtures("small_archive", "workplace")
def test_every_block_of_the_page_runs(tmp_path: Path) -> None:
    scope: dict[str, Any] = {}
    for block in blocks(PAGE, "python"):
        exec(compile(block, str(PAGE), "exec"), scope)
    files = {file.name for file in tmp_path.glob("*.p*")}
    assert files == {"speedup.pdf", "communication.pdf", "scaling-resnet50.png"}
    assert len(scope["changed"].throughputs) == 4
    assert len(scope["logs"].runs) == 9


def test_every_public_name_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in dlperf_study.__all__ if f"dlperf_study.{name}" not in text] == []
