"""What a run asks of its nodes."""

from dlperf_study.machines.guard.coordinator import ConductedRun, _values, prepare_request
from dlperf_study.machines.guard.submission import Node, Submission


def test_ports_are_taken_in_their_random_order_and_only_where_all_nodes_have_them():
    """The lowest of many random ports are likely to be those of a run that starts at the same time."""
    submission = Submission("local", "folder", (), 2, nodes=2, node_folder="")
    run = ConductedRun(submission, (Node(), Node()), "mark@host")
    for index, ports in enumerate(([31_000, 20_001, 25_000], [25_000, 20_002, 31_000])):
        run.ready[index] = {"address": "127.0.0.1", "interface": "lo", "devices": "", "ports": ports}
    values = _values(run)
    assert (values["port_0"], values["port_1"]) == ("31000", "25000")


def test_a_run_of_many_ranks_tries_more_ports_than_it_needs():
    requested = [prepare_request(Submission("local", "folder", (), ports), ())["ports"] for ports in (0, 2, 100)]
    assert [len(set(ports)) for ports in requested] == [0, 64, 200]
