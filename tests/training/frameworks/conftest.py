"""What the tests of this folder share."""

from collections.abc import Callable
from functools import cache

import pytest

from dlperf_study.records.rank_log import RankLog
from dlperf_study.study.configuration import Configuration
from tests.training.frameworks import launching

Logs = Callable[[Configuration], list[RankLog]]


@pytest.fixture(scope="module")
def logs_of(tmp_path_factory: pytest.TempPathFactory) -> Logs:
    """Return what trains a configuration once, and returns the logs of its ranks."""
    return cache(lambda requested: launching.logs_of(requested, tmp_path_factory.mktemp(requested.framework)))
