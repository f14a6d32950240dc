"""Constructed studies, collected once each."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from dlperf_study.core.paths import OUTPUTS_VARIABLE, REPORT_VARIABLE, StudyPaths
from dlperf_study.dataset.dataset import Dataset, collect
from dlperf_study.study.study import SECTIONS
from tests.evidence_factory import Planned, Recipe, configuration, write_study

ALONE = Recipe(compute_seconds=0.080)
TOGETHER = Recipe(
    compute_seconds=0.080, exposed_communication_seconds=0.024, communication_seconds=0.048, rank_advantage=0.05
)


#: The datasets of this process by what they were made from, and the folder of their evidence.
_DATASETS: dict[str, Dataset] = {}
_FOLDER = TemporaryDirectory(prefix="dlperf_study_reports_")


def mixed_entries() -> list[Planned]:
    """A baseline, a scaled configuration, too few runs, a failure, a failed baseline, and an unsupported one."""
    one, two, four, eight = (configuration(devices_per_node=count) for count in (1, 2, 4, 8))
    local = configuration(framework="paddle_ps", strategy="local")
    served = configuration(framework="paddle_ps", strategy="async", devices_per_node=2, parameter_servers=1)
    half = configuration(precision="fp16")
    memory = Recipe(status="out_of_memory", reason="trainer-0 asked for 100 % of it & more")
    return [
        Planned(one, ALONE, reference=one),
        Planned(two, TOGETHER, reference=two),
        Planned(four, TOGETHER, runs=2, reference=four),
        Planned(eight, memory, runs=1, reference=eight),
        Planned(local, Recipe(status="timeout", reason="no end after 600 s"), runs=1, baseline=local, reference=one),
        Planned(served, replace(TOGETHER, communication="push_pull"), baseline=local, reference=two),
        Planned(half, unsupported="precision fp16 is not built", baseline=half, reference=one),
    ]


def write_titled(paths: StudyPaths, planned: list[Planned], **changes: Any) -> Dataset:
    """Write a study with a title and questions, and collect it."""
    plan = write_study(paths, planned)
    given = {"sections": SECTIONS, "published": ("tensorpack_multigpu",), **changes}
    plan.changed(title="Constructed & shown", **given).write(paths.plan_file)
    return collect(paths)


def study(*planned: Planned, **changes: Any) -> Dataset:
    """Return a titled study, the same to all tests that plan the same. Look, don't touch: replace what is to differ."""
    made_from = repr((planned, changes))
    if made_from not in _DATASETS:
        paths = StudyPaths(Path(_FOLDER.name) / str(len(_DATASETS)) / "example")
        _DATASETS[made_from] = write_titled(paths, list(planned), **changes)
    return _DATASETS[made_from]


def on_devices(*counts: int, recipe: Recipe = ALONE, **changes: Any) -> Dataset:
    """Return a study of one configuration on each of these numbers of devices."""
    return study(*(Planned(configuration(devices_per_node=count), recipe) for count in counts), **changes)


@pytest.fixture(scope="session")
def mixed() -> Dataset:
    return study(*mixed_entries())


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyPaths:
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    return StudyPaths.of("example")


@pytest.fixture
def on_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is shown is part of a report that is built, with files and links; else a person executes a notebook."""
    monkeypatch.setenv(REPORT_VARIABLE, str(tmp_path / "report.unfinished"))
