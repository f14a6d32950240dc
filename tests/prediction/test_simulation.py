"""The simulated training against what can be computed by hand, and predictions against it."""

import numpy as np
import pytest

from benchmarks import simulated_scaling
from benchmarks._collectives import Link, Network, hierarchical_all_reduce, ring, ring_all_reduce, ring_by_events
from benchmarks._simulated_training import LAYOUTS, Training, Work
from benchmarks.simulated_scaling import DOCS_PAGE, LARGEST_ERROR, errors_of_model, errors_of_ring, table, truth_of
from dlperf_study.prediction.physical_model import model_of

#: Without jitter: 1 GB/s and 1 ms inside a node of two devices, 0.1 GB/s and 2 ms between nodes.
NETWORK = Network(2, Link(1e-3, 1e9), Link(2e-3, 1e8))
WORK = Work(seconds=0.6, gradient_bytes=64e6, parts=4, deviation=0.0)


def step_seconds(layout, nodes, network=NETWORK):
    run = Training(network, WORK, nodes, 4, np.random.default_rng(0))
    LAYOUTS[layout](run)
    return run.step_seconds(1)


def test_rounds_of_a_ring_are_what_an_event_for_each_chunk_gives():
    generator = np.random.default_rng(1)
    ready, seconds = generator.uniform(0, 5, 12), generator.uniform(0.1, 2, 12)
    rounds = ring(ready[:, None], seconds, np.zeros(12), 22, generator)[:, 0]
    np.testing.assert_allclose(rounds, ring_by_events(ready, seconds, 22))


def test_all_reduces_take_what_their_rounds_take():
    generator = np.random.default_rng(0)
    # Two nodes: 6 rounds, each as long as a quarter of the bytes from node to node.
    done = ring_all_reduce(NETWORK, np.zeros(4), 64e6, generator)
    assert done.max() == pytest.approx(6 * (2e-3 + 16e6 / 1e8), rel=1e-3)
    # Two rounds inside a node of half of the bytes; two between nodes of a quarter, over a link that two share.
    done = hierarchical_all_reduce(NETWORK, np.zeros(4), 64e6, generator)
    assert done.max() == pytest.approx(2 * (1e-3 + 32e6 / 1e9) + 2 * (2e-3 + 2 * 16e6 / 1e8))


def test_a_step_is_what_its_parts_are():
    # The last of four parts is exposed, as the backward pass of 0.4 s hides the others: 16 MB over 16 MB/s or so.
    fast = Network(2, Link(1e-3, 1e10), Link(1e-3, 1e9))
    assert step_seconds("ring", 2, fast) == pytest.approx(0.6 + 6 * (1e-3 + 4e6 / 1e9), rel=1e-2)
    # All gradients through 16 links, twice, by four devices in turn.
    assert step_seconds("servers", 2) == pytest.approx(0.6 + 2 * 16 * (2e-3 + 4e6 / 1e8), rel=1e-6)
    # Sixteen micro-batches and a bubble of one on two stages; activations of 0.64 MB cross once each way.
    alone = step_seconds("pipeline", 1)
    assert alone == pytest.approx(0.6 * 17 / 16 + 2 * (1e-3 + 0.04e6 / 1e9), rel=1e-3)
    # Half of the gradients each stage, over a link that both share.
    assert step_seconds("pipeline", 2) - alone == pytest.approx(2 * (2e-3 + 2 * 16e6 / 1e8), rel=1e-2)


def test_jitter_makes_more_devices_slower():
    network = Network(2, Link(1e-6, 1e12), Link(1e-6, 1e12))
    steps = []
    for nodes in (1, 64):
        run = Training(network, Work(deviation=0.02), nodes, 30, np.random.default_rng(2))
        LAYOUTS["ring"](run)
        steps.append(run.step_seconds(1) / 0.16 - 1)
    # The expected largest of 2 and of 128 normal values: 0.56 and 2.6 deviations.
    assert steps == pytest.approx([0.56 * 0.02, 2.6 * 0.02], rel=0.25)


@pytest.fixture(scope="module")
def truths():
    """Every layout on the measured nodes and on twice as many."""
    return [truth_of(layout, 2 * simulated_scaling.MEASURED_NODES[-1]) for layout in LAYOUTS]


def test_twice_the_measured_nodes_are_predicted_as_the_page_says(truths):
    page = DOCS_PAGE.read_text(encoding="utf-8")
    for line in list(table(truths, [64]))[2:]:
        assert line.removesuffix("|") in page, "write it again: python -m benchmarks.simulated_scaling --write"


def test_the_ring_of_nodes_is_right_where_it_makes_claims(truths):
    errors = {truth.layout: errors_of_ring(truth) for truth in truths}
    assert errors.pop("servers") == errors.pop("asynchronous servers") == {}
    assert max(abs(error) for of_layout in errors.values() for error in of_layout.values()) < LARGEST_ERROR


def test_the_physical_model_is_right_for_every_layout(truths):
    errors = {truth.layout: abs(errors_of_model(truth)[64]) for truth in truths}
    # Queues at servers that are nearly as fast as their trainers are not in its formulas.
    assert errors.pop("asynchronous servers") < 0.1
    assert max(errors.values()) < 0.02
    algorithms = {truth.layout: model_of(truth.curve).cost.algorithm.name for truth in truths}
    assert (algorithms["ring"], algorithms["hierarchical"]) == ("ring", "hierarchical")
