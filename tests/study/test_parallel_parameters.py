"""Degrees of parallelism: what is derived from them, and what does not fit the devices."""

import pytest

from dlperf_study.study.layout import Layout
from dlperf_study.study.parallel_parameters import layout_obstacles
from dlperf_study.study.plan import build_plan
from dlperf_study.training.data_loaders._base import batch_consumer
from tests.evidence_factory import configuration
from tests.study.examples import anything_goes, cluster, rule, study


@pytest.mark.parametrize(
    ("values", "layout", "global_batch"),
    [
        ({}, Layout(data=8), 256),
        ({"tensor_parallel": 2}, Layout(data=4, tensor=2), 128),
        ({"tensor_parallel": 2, "pipeline_parallel": 4}, Layout(pipeline=4, tensor=2), 32),
        ({"zero_stage": 1}, Layout(data=8), 256),
        ({"zero_stage": 2}, Layout(shard=8), 256),
        ({"zero_stage": 3, "tensor_parallel": 4}, Layout(shard=2, tensor=4), 64),
    ],
)
def test_the_ranks_with_samples_of_their_own_follow_from_the_devices(values, layout, global_batch):
    requested = configuration(nodes=2, devices_per_node=4, **values)
    assert requested.layout == layout
    assert requested.global_batch == global_batch
    assert not [*layout_obstacles(vars(requested))]


def test_degrees_that_do_not_divide_the_devices_are_one_obstacle():
    degrees = {"tensor_parallel": 3, "pipeline_parallel": 2}
    requested = study(constants={**study().constants, **degrees}, factors={"devices_per_node": [4], "nodes": [1, 3]})
    requested = requested.changed(baseline=(rule({"nodes": 3}),))
    one, three = build_plan(requested, cluster(), anything_goes).entries
    assert one.unsupported == "tensor_parallel 3 × pipeline_parallel 2 = 6 does not divide 4 devices"
    assert three.unsupported is None
    assert (one.configuration.global_batch, three.configuration.global_batch) == (0, 64)


def test_groups_of_devices_share_a_global_batch():
    values = {**study().constants, "tensor_parallel": 2, "global_batch": 3}
    factors = {"nodes": [1], "devices_per_node": [2, 4]}
    baseline = (rule({"devices_per_node": 2}),)
    plan = build_plan(
        study(scaling="strong", constants=values, factors=factors, baseline=baseline), cluster(), anything_goes
    )
    assert [entry.configuration.batch_per_device for entry in plan.entries] == [3, 0]
    assert [entry.unsupported for entry in plan.entries] == [
        None,
        "global_batch 3 cannot be split equally over 2 groups of 2 devices",
    ]


def test_ranks_that_divide_a_model_take_the_same_samples():
    requested = configuration(devices_per_node=8, tensor_parallel=2, pipeline_parallel=2)
    consumers = [batch_consumer(requested, rank, "torch") for rank in range(8)]
    assert [consumer.replica for consumer in consumers] == [0, 0, 1, 1, 0, 0, 1, 1]
    assert {consumer.replicas for consumer in consumers} == {2}
    assert [consumer.rank for consumer in consumers] == list(range(8))
