"""In which order the runs of a plan are measured."""

from collections import Counter
from dataclasses import replace

from dlperf_study.plan.order import PlannedExecution, planned_executions
from dlperf_study.plan.plan import Plan, build_plan
from dlperf_study.study.turn import Turn
from tests.study.examples import anything_goes, cluster, study


def plan_of(devices: tuple[int, ...] = (1, 2, 4, 8), repeats: int = 3, **changes: object) -> Plan:
    factors = {"devices_per_node": list(devices)}
    return build_plan(study(factors=factors, measurement={"repeats": repeats}, **changes), cluster(), anything_goes)


def names(executions: list[PlannedExecution], round_number: int) -> list[str]:
    return [each.configuration.identity for each in executions if each.turn.round == round_number]


def test_a_round_has_every_configuration_once_and_the_rounds_follow_one_another() -> None:
    plan = plan_of()
    executions = planned_executions(plan)
    assert [each.turn.round for each in executions] == [1] * 4 + [2] * 4 + [3] * 4
    assert [each.turn.position for each in executions] == [1, 2, 3, 4] * 3
    assert [each.repetitions for each in executions] == [(each.turn.round,) for each in executions]
    identities = sorted(entry.configuration.identity for entry in plan.entries)
    assert [sorted(names(executions, number)) for number in (1, 2, 3)] == [identities] * 3
    assert [each.is_last for each in executions] == [False] * 8 + [True] * 4


def test_a_configuration_is_at_every_position_equally_often() -> None:
    executions = planned_executions(plan_of(repeats=400))
    positions = Counter((each.configuration.identity, each.turn.position) for each in executions)
    assert len(positions) == 16
    # Binomial(400, 1/4): mean 100, standard deviation 8.7.
    assert min(positions.values()) > 65
    assert max(positions.values()) < 135


def test_the_seed_decides_the_order_and_nothing_else_does() -> None:
    assert planned_executions(plan_of(order_seed=7)) == planned_executions(plan_of(order_seed=7))
    orders = {tuple(names(planned_executions(plan_of(order_seed=seed)), 1)) for seed in range(20)}
    assert len(orders) > 5


def test_a_further_configuration_does_not_change_the_order_of_the_others() -> None:
    fewer, more = planned_executions(plan_of((1, 2, 4))), planned_executions(plan_of((1, 2, 4, 8)))
    of_both = {each.configuration.identity for each in fewer}
    for number in (1, 2, 3):
        assert [name for name in names(more, number) if name in of_both] == names(fewer, number)


def test_there_are_as_many_rounds_as_the_configuration_with_most_repeats_has() -> None:
    plan = plan_of((1, 2))
    first, second = plan.entries
    entries = (replace(first, configuration=replace(first.configuration, repeats=5)), second)
    executions = planned_executions(replace(plan, entries=entries))
    assert Counter(each.turn.round for each in executions) == {1: 2, 2: 2, 3: 2, 4: 1, 5: 1}
    assert [each.turn.round for each in executions if each.is_last] == [3, 5]


def test_what_cannot_run_has_no_turn() -> None:
    plan = plan_of()
    entries = (replace(plan.entries[0], unsupported="not built"), *plan.entries[1:])
    executions = planned_executions(replace(plan, entries=entries))
    assert [each.turn.position for each in executions] == [1, 2, 3] * 3


def test_blocks_are_one_execution_of_all_runs_for_each_configuration_in_the_order_of_the_study() -> None:
    plan = plan_of(order="blocks")
    executions = planned_executions(plan)
    assert [each.configuration for each in executions] == [entry.configuration for entry in plan.entries]
    assert {each.repetitions for each in executions} == {(1, 2, 3)}
    assert {each.turn for each in executions} == {Turn("blocks")}
    assert all(each.is_last for each in executions)
