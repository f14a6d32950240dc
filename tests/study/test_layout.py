"""Layouts: every rank has one position, groups partition the ranks, replicas cover the global batch once."""

from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlperf_study.study.layout import DIMENSIONS, OF_COPIES, OF_REPLICA, Layout

SIZES = st.integers(1, 3)
LAYOUTS = st.builds(Layout, **dict.fromkeys(DIMENSIONS, SIZES))
#: On a machine that does other work, too.
ENOUGH = settings(max_examples=40)
GROUPED = st.lists(st.sampled_from(DIMENSIONS), unique=True)


@ENOUGH
@given(LAYOUTS)
def test_every_rank_has_a_position_of_its_own(layout):
    positions = [layout.coordinates(rank) for rank in range(layout.devices)]
    assert len(set(positions)) == layout.devices
    assert [layout.rank(position) for position in positions] == list(range(layout.devices))


@ENOUGH
@given(LAYOUTS, GROUPED)
def test_groups_partition_the_ranks(layout, dimensions):
    groups = layout.groups(*dimensions)
    assert sorted(chain(*groups)) == list(range(layout.devices))
    for group in groups:
        assert all(layout.group(rank, *dimensions) == group for rank in group)


@ENOUGH
@given(LAYOUTS, st.integers(1, 5))
def test_the_batches_of_replicas_cover_the_global_batch_once(layout, batch):
    samples: dict[int, set[int]] = {}
    for rank in range(layout.devices):
        replica = layout.replica(rank)
        samples.setdefault(replica, set()).update(range(replica * batch, (replica + 1) * batch))
    assert sorted(chain(*samples.values())) == list(range(layout.replicas * batch))
    assert layout.replicas * layout.devices_per_replica == layout.devices


@ENOUGH
@given(LAYOUTS)
def test_the_ranks_of_a_replica_share_samples_and_those_of_copies_do_not_share_a_stage(layout):
    for rank in range(layout.devices):
        replica = layout.group(rank, *OF_REPLICA)
        assert {layout.replica(member) for member in replica} == {layout.replica(rank)}
        assert len(replica) == layout.devices_per_replica
        assert any(layout.holds_loss(member) for member in replica)
        copies = [layout.coordinates(member) for member in layout.group(rank, *OF_COPIES)]
        assert len({(copy.pipeline, copy.tensor, copy.shard) for copy in copies}) == 1


@ENOUGH
@given(LAYOUTS, st.sets(st.sampled_from(DIMENSIONS)))
def test_the_dimensions_of_a_group_are_the_fewest_that_form_it(layout, chosen):
    for group in layout.groups(*chosen):
        dimensions = layout.dimensions(group)
        assert set(dimensions) == {name for name in chosen if getattr(layout, name) > 1}
        assert layout.group(group[0], *dimensions) == group
    assert layout.dimensions(range(layout.devices)) == tuple(n for n in DIMENSIONS if getattr(layout, n) > 1)


def test_ranks_that_form_no_group_have_no_dimensions():
    assert Layout(data=2, tensor=2).dimensions((0, 3)) == ()


def test_tensor_neighbours_are_next_to_each_other_and_stages_are_far_apart():
    layout = Layout(pipeline=2, data=2, tensor=2)
    assert layout.groups("tensor") == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert layout.groups("data") == ((0, 2), (1, 3), (4, 6), (5, 7))
    assert layout.groups("pipeline") == ((0, 4), (1, 5), (2, 6), (3, 7))
    assert [layout.holds_loss(rank) for rank in range(8)] == [False] * 4 + [True] * 4


@pytest.mark.parametrize("rank", [-1, 4])
def test_a_number_that_is_no_rank_is_refused(rank):
    with pytest.raises(ValueError, match="not one of 4 ranks"):
        Layout(data=4).coordinates(rank)
