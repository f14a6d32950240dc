"""How many processes do a task, where their server is, and what each of them imports."""

import os
import tempfile

import pytest

from dlperf_study.core import process_pool


def test_there_are_as_many_processes_as_cores_and_no_more_than_tasks():
    cores = len(os.sched_getaffinity(0))
    assert [process_pool.processes_for(tasks) for tasks in (0, 1, 10**6)] == [0, 1, cores]


@pytest.mark.parametrize("earlier", [None, "0"])
def test_a_server_starts_safely_and_leaves_the_environment_as_it_was(monkeypatch, tmp_path, earlier):
    variable, folder = process_pool.SAFE_PATH_VARIABLE, str(tmp_path / ("t" * 80))
    monkeypatch.delenv(variable, raising=False)
    if earlier:
        monkeypatch.setenv(variable, earlier)
    monkeypatch.setattr(tempfile, "tempdir", folder)
    with process_pool.starting_server():
        assert (os.environ[variable], tempfile.gettempdir()) == ("1", "/tmp")
    assert (os.environ.get(variable), tempfile.gettempdir()) == (earlier, folder)
