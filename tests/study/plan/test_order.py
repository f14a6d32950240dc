"""In which order the runs of a plan are measured."""

from collections import Counter
from dataclasses import replace

from dlperf_study.study.job import Turn
from dlperf_study.study.order import PlannedExecution, planned_executions
from dlperf_study.study.plan import Plan, build_plan
from tests.study.examples import anything_goes, cluster, study


def plan_of(devices: tuple[int, ...] = (1, 2, 4, 8), repetitions: int = 3, **changes: object) -> Plan:
    factors = {"devices_per_node": list(devices)}
    return build_plan(
        study(factors=factors, measurement={"repetitions": repetitions}, **changes), cluster(), anything_goes
    )


def names(executions: list[PlannedExecution], round_number: int) -> list[str]:
    return [each.configuration.configuration_id for each in executions if each.turn.round == round_number]


def test_a_round_has_every_configuration_once_and_the_rounds_follow_one_another():
    plan = plan_of()
    executions = planned_executions(plan)
    assert [each.turn.round for each in executions] == [1] * 4 + [2] * 4 + [3] * 4
    assert [each.turn.position for each in executions] == [1, 2, 3, 4] * 3
    assert [each.repetitions for each in executions] == [(each.turn.round,) for each in executions]
    configuration_ids = sorted(entry.configuration.configuration_id for entry in plan.entries)
    assert [sorted(names(executions, number)) for number in (1, 2, 3)] == [configuration_ids] * 3


def test_a_configuration_is_at_every_position_equally_often():
    executions = planned_executions(plan_of(repetitions=400))
    positions = Counter((each.configuration.configuration_id, each.turn.position) for each in executions)
    assert len(positions) == 16
    # Of 200 pairs, in half of which a configuration is at a position or its mirror: mean 100, standard deviation 10.
    assert min(positions.values()) > 60
    assert max(positions.values()) < 140


def test_every_second_round_has_the_reversed_order_of_the_one_before_it():
    executions = planned_executions(plan_of(repetitions=10))
    orders = [names(executions, number) for number in range(1, 11)]
    assert [order[::-1] for order in orders[1::2]] == orders[::2]
    assert len(set(map(tuple, orders[::2]))) > 1


def test_the_seed_decides_the_order_and_nothing_else_does():
    assert planned_executions(plan_of(order_seed=7)) == planned_executions(plan_of(order_seed=7))
    orders = {tuple(names(planned_executions(plan_of(order_seed=seed)), 1)) for seed in range(20)}
    assert len(orders) > 5


def test_a_further_configuration_does_not_change_the_order_of_the_others():
    fewer, more = planned_executions(plan_of((1, 2, 4))), planned_executions(plan_of((1, 2, 4, 8)))
    of_both = {each.configuration.configuration_id for each in fewer}
    for number in (1, 2, 3):
        assert [name for name in names(more, number) if name in of_both] == names(fewer, number)


def test_there_are_as_many_rounds_as_the_configuration_with_most_repeats_has():
    plan = plan_of((1, 2))
    first, second = plan.entries
    entries = (first.model_copy(update={"configuration": replace(first.configuration, repetitions=5)}), second)
    executions = planned_executions(plan.changed(entries=entries))
    assert Counter(each.turn.round for each in executions) == {1: 2, 2: 2, 3: 2, 4: 1, 5: 1}


def test_what_cannot_run_has_no_turn():
    plan = plan_of()
    entries = (plan.entries[0].model_copy(update={"unsupported": "not built"}), *plan.entries[1:])
    executions = planned_executions(plan.changed(entries=entries))
    assert [each.turn.position for each in executions] == [1, 2, 3] * 3


def test_blocks_are_one_execution_of_all_runs_for_each_configuration_in_the_order_of_the_study():
    plan = plan_of(order="sequential")
    executions = planned_executions(plan)
    assert [each.configuration for each in executions] == [entry.configuration for entry in plan.entries]
    assert {each.repetitions for each in executions} == {(1, 2, 3)}
    assert {each.turn for each in executions} == {Turn("sequential")}
