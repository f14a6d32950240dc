"""What the tests of the self-test share: a folder of outputs, and what those need that measure on this machine."""

import pytest

from dlperf_study.core.paths import OUTPUTS_VARIABLE
from tests.command_line import CLUSTER, PATIENCE_SECONDS, first_in_line, machine_is_free, wait_for


@pytest.fixture(autouse=True)
def _outputs(tmp_path, monkeypatch):
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))


@pytest.fixture
def machine_is_ours():
    """Keep other tests from measuring meanwhile."""
    with first_in_line():
        wait_for(machine_is_free, "the machine to be free", PATIENCE_SECONDS)
        yield


@pytest.fixture
def cluster_file(tmp_path):
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER)
    return str(file)
