"""What a run asks of its nodes."""

import pytest

from dlperf_study.machines.node_agent.coordinator import ConductedRun, _Conclusion, _result, _values, prepare_request
from dlperf_study.machines.node_agent.run_folder import pack, unpack, write_waiting
from dlperf_study.machines.node_agent.submission import Node
from dlperf_study.study.job import RunStatus
from tests.machines import submissions


def test_ports_are_taken_in_their_random_order_and_only_where_all_nodes_have_them():
    """The lowest of many random ports are likely to be those of a run that starts at the same time."""
    submission = submissions.submission("local", "folder", (), 2, nodes=2, node_folder="")
    run = ConductedRun(submission, (Node(), Node()), "mark@host")
    for index, ports in enumerate(([31_000, 20_001, 25_000], [25_000, 20_002, 31_000])):
        run.ready[index] = {"address": "127.0.0.1", "interface": "lo", "devices": "", "ports": ports}
    values = _values(run)
    assert (values["port_0"], values["port_1"]) == ("31000", "25000")


def test_a_run_of_many_ranks_tries_more_ports_than_it_needs():
    requested = [
        prepare_request(submissions.submission("local", "folder", (), ports), ())["ports"] for ports in (0, 2, 100)
    ]
    assert [len(set(ports)) for ports in requested] == [0, 64, 200]


@pytest.mark.parametrize(("lost", "task"), [((), "node-0"), ((1,), ""), ((0,), "node-0")])
def test_where_a_node_fell_silent_no_task_is_to_blame(lost, task):
    """Its silence may be what the other ranks failed of; that of the node that failed is no news."""
    submission = submissions.submission("local", "folder", (), 0, nodes=2, node_folder="")
    run = ConductedRun(submission, (Node("h1"), Node("h2")), "mark@host", started_nodes={0, 1})
    report = {"exit_codes": {}, "busy_cores": None, "out_of_memory_kills": 0}
    conclusion = _Conclusion(RunStatus.FAILED, "node-0 on h1 exited with code 1", 0, "node-0")
    result = _result(run, conclusion, {index: report for index in (0, 1) if index not in lost}, lost)
    assert result.failed_task == task
    assert ("h2 stopped answering" in result.reason) == (lost == (1,))


def test_what_the_driver_has_of_a_run_is_not_replaced_by_what_a_node_sends(tmp_path):
    """Nodes may share the folder of a run: a packed copy is older than what is there."""
    for name in ("node", "controller"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "both.log").write_text(name)
    (tmp_path / "node" / "new.log").write_text("node")
    unpack(pack(tmp_path / "node"), tmp_path / "controller")
    assert {file.name: file.read_text() for file in (tmp_path / "controller").iterdir()} == {
        "both.log": "controller",
        "new.log": "node",
    }


def test_a_process_may_have_any_name(tmp_path):
    """Its bytes need not be UTF-8, and what is said of it must be written all the same."""
    submission = submissions.submission("local", str(tmp_path), (), 0, nodes=1, node_folder="")
    write_waiting(submission, f"busy: {bytes([0xE9]).decode(errors='surrogateescape')} (process 7)")
    assert submission.paths.waiting.read_text() == "busy: \\udce9 (process 7)\n"
