"""The plan as the command line prints it."""

from collections.abc import Callable

from dlperf_study.study.batch_search import BatchSearch
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.plan import Plan, build_plan
from dlperf_study.study.plan_description import ENDS, LONGEST_LIST, EarlierRuns, describe, describe_reuse
from tests.study.examples import anything_goes, cluster, rule, study


def two_sizes(**changes: object) -> Plan:
    return build_plan(study(factors={"devices_per_node": [1, 2]}, **changes), cluster(), anything_goes)


def test_a_plan_shows_what_runs_and_what_cannot(snapshot):
    def refuse(configuration: Configuration) -> str | None:
        return "xla is not built" if configuration.compiler == "xla" else None

    example = study(
        factors={"compiler": ["none", "xla"], "devices_per_node": [1, 2, 4]},
        exclude=({"compiler": ["xla"], "devices_per_node": [4]},),
        measurement={"repetitions": 5},
    )
    assert describe(build_plan(example, cluster(1, 2), refuse)) == snapshot


def test_the_time_is_that_of_earlier_runs(snapshot):
    plan = two_sizes()
    small, large = (entry.configuration.configuration_id for entry in plan.entries)
    assert describe(plan, EarlierRuns({small: 30, large: 90})) == snapshot
    text = describe(plan, EarlierRuns({large: 100}))
    assert text == snapshot


def test_what_is_done_is_counted_and_only_the_rest_takes_time(snapshot):
    plan = two_sizes()
    small, large = (entry.configuration.configuration_id for entry in plan.entries)
    repetitions = plan.entries[0].configuration.repetitions
    text = describe(plan, EarlierRuns({small: 30, large: 90}, {small: repetitions, large: repetitions - 1}))
    assert text == snapshot
    assert "about 2 min" in describe_reuse(
        plan, EarlierRuns({large: 100}, {small: repetitions, large: repetitions - 1})
    )
    all_done = dict.fromkeys((small, large), repetitions)
    assert describe_reuse(plan, EarlierRuns(done=all_done)) == snapshot
    assert "Nothing" not in describe_reuse(two_sizes(target_ci=0.02, max_repetitions=7), EarlierRuns(done=all_done))


def test_a_configuration_that_does_not_fit_has_no_runs_to_do(snapshot):
    plan = two_sizes()
    small, large = (entry.configuration.configuration_id for entry in plan.entries)
    text = describe(plan, EarlierRuns({small: 30}, {small: 1}, {large: "MemoryError"}))
    assert "To do: 2 runs, about 1 min" in text
    assert text == snapshot


def test_precision_blocks_and_what_gives_no_number_are_said(snapshot):
    plan = two_sizes(target_ci=0.02, max_repetitions=7, time_budget_minutes=30.0)
    assert describe(plan) == snapshot
    in_blocks = "Runs are measured in sequential order: ratios get no CI and no test."
    assert in_blocks in describe(two_sizes(order="sequential"))
    in_rounds = describe(two_sizes())
    for sentence in ("Measuring ends", "nor in their time", in_blocks):
        assert sentence not in in_rounds
    text = describe(two_sizes(), unmeasured={"NCCL-reported": 2})
    assert text == snapshot


def test_what_does_not_fit_is_numbered_and_not_counted(snapshot):
    plan = two_sizes()
    small, large = (entry.configuration.configuration_id for entry in plan.entries)
    text = describe(
        plan,
        EarlierRuns(not_fitting={large: "MemoryError"}),
        {small: BatchSearch(512), large: BatchSearch(512, 224, 225, 10)},
    )
    runs = plan.entries[0].configuration.repetitions
    assert f"in {runs} runs." in text
    assert text == snapshot


def test_a_configuration_whose_baseline_cannot_run_is_marked(snapshot):
    def refuse(configuration: Configuration) -> str | None:
        return "refused" if configuration.world_size == 1 else None

    text = describe(build_plan(study(factors={"devices_per_node": [1, 2]}), cluster(), refuse))
    assert text.splitlines() == snapshot


def test_references_are_named_and_so_are_those_that_cannot_run(snapshot):
    def refuse(configuration: Configuration) -> str | None:
        return "refused" if configuration.framework == "paddle_ps" and configuration.world_size == 2 else None

    example = study(
        sections=("comparison",),
        constants={"strategy": "all_reduce", "model": "resnet50"},
        factors={"framework": ["paddle_ps", "torch_ddp"], "devices_per_node": [1, 2]},
        baseline=(rule({"devices_per_node": 1}),),
        reference=(rule({"framework": "paddle_ps"}),),
    )
    lines = describe(build_plan(example, cluster(), refuse)).splitlines()
    assert lines == snapshot


def many(can_run: Callable[[Configuration], bool], count: int = LONGEST_LIST + 1) -> Plan:
    """Return the plan of a study of so many batches; all are compared with the first one."""

    def refuse(configuration: Configuration) -> str | None:
        return None if can_run(configuration) else f"a seed of {configuration.seed % 30} is not built"

    example = study(
        constants={"framework": "paddle_collective", "strategy": "all_reduce", "model": "resnet50"},
        factors={"seed": list(range(count))},
        baseline=(rule({"seed": 0}),),
    )
    return build_plan(example, cluster(), refuse)


def test_of_a_longer_list_the_first_and_the_last_rows_are_shown_and_the_rest_on_request(snapshot):
    plan = many(lambda _: True)
    table = describe(plan).split("\n\n")[1].splitlines()
    complete = describe(plan, complete=True).split("\n\n")[1].splitlines()
    assert len(complete) == 1 + LONGEST_LIST + 1
    assert table[1 : 1 + ENDS] == complete[1 : 1 + ENDS]
    assert table[1 + ENDS].split() == ["…"] * 4
    assert table[2 + ENDS : -1] == complete[-ENDS:]
    assert table[-1] == snapshot
    # A list that is not too long is complete.
    shorter = many(lambda _: True, LONGEST_LIST)
    assert len(describe(shorter).split("\n\n")[1].splitlines()) == 1 + LONGEST_LIST
    assert describe(shorter) == describe(shorter, complete=True)


def test_a_shortened_list_says_how_many_configurations_have_no_ratio(snapshot):
    text = describe(many(lambda configuration: configuration.seed > 0, LONGEST_LIST + 2))
    assert text.splitlines() == snapshot


def test_many_that_can_not_run_are_counted_by_reason(snapshot):
    plan = many(lambda configuration: configuration.seed % 30 == 0, 301)
    lines = describe(plan).split("Not supported here:\n")[1].splitlines()
    assert lines[0].split() == ["configurations", "reason"]
    assert lines[1].split(maxsplit=1) == snapshot
    assert lines[-2].split(maxsplit=1) == ["…", "9 other reasons"]
    assert lines[-1] == snapshot
    assert describe(plan, complete=True).count("is not built") == 290


def test_a_configuration_with_two_reasons_counts_for_each(snapshot):
    def refuse(configuration: Configuration) -> str | None:
        return "xla is not built; `make xla` builds it" if configuration.compiler == "xla" else None

    batches = list(range(1, 9))
    example = study(factors={"batch_per_device": batches, "compiler": ["none", "xla"], "devices_per_node": [1, 4]})
    lines = describe(build_plan(example, cluster(1, 2), refuse)).split("Not supported here:\n")[1].splitlines()
    assert [int(line.split()[0]) for line in lines[1:3]] == [16, 16]
    assert lines == snapshot
