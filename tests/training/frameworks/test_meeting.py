"""How long ranks wait for each other, and what is said when one never comes."""

import pytest

from dlperf_study.core.errors import RunError
from dlperf_study.study.environment_variables import start_up_environment
from dlperf_study.training.frameworks import _processes, torch_ddp
from tests.training.frameworks.forked_ranks import free_port


def test_a_process_that_never_answers_is_waited_for_as_long_as_the_cluster_file_says(monkeypatch):
    for name, value in start_up_environment(0.2, 60).items():
        monkeypatch.setenv(name, value)
    endpoint = f"127.0.0.1:{free_port()}"
    message = f"nothing answered at {endpoint} within 0.2 s, which is start_up.meet_seconds of the cluster file"
    with pytest.raises(RunError) as caught:
        _processes.wait_for(endpoint)
    assert str(caught.value) == message


@pytest.mark.needs("torch")
def test_a_rank_of_pytorch_that_never_comes_is_missed_with_the_key(monkeypatch):
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "RANK": "0", "WORLD_SIZE": "2"}
    for name, value in (place | start_up_environment(1, 60)).items():
        monkeypatch.setenv(name, value)
    allowed = "the ranks did not meet; they may take 1 s, which is start_up.meet_seconds of the cluster file: "
    with pytest.raises(RunError, match=allowed):
        torch_ddp._join(0, 2)
