"""A study that several files of these tests look at."""

from collections.abc import Iterator

import pytest

from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from tests.evidence_factory import Planned, configuration, write_study


@pytest.fixture(scope="module")
def two_models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two models on one and two devices; of one of them too few runs for an interval."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path_factory.mktemp("outputs")))
        planned = []
        for model, runs in (("resnet50", 3), ("mobilenet_v2", 2)):
            for devices in (1, 2):
                planned.append(Planned(configuration(model=model, devices_per_node=devices), runs=runs))
        write_study(StudyPaths.of("quickstart"), planned)
        yield "quickstart"
