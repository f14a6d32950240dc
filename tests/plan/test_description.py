"""The plan as the command line prints it."""

from collections.abc import Callable

from dlperf_study.plan.batch_search import BatchSearch
from dlperf_study.plan.description import ENDS, LONGEST_LIST, describe
from dlperf_study.plan.plan import Plan, build_plan
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.grid import DenominatorRule
from tests.study.examples import anything_goes, cluster, study


def two_sizes(**changes: object) -> Plan:
    return build_plan(study(factors={"devices_per_node": [1, 2]}, **changes), cluster(), anything_goes)


def test_a_plan_shows_what_runs_and_what_cannot() -> None:
    def refuse(configuration: Configuration) -> str | None:
        return "xla is not built" if configuration.compiler == "xla" else None

    example = study(
        factors={"compiler": ["none", "xla"], "devices_per_node": [1, 2, 4]},
        exclude=({"compiler": ["xla"], "devices_per_node": [4]},),
        measurement={"repeats": 5},
    )
    assert describe(build_plan(example, cluster(1, 2), refuse), {}) == (
        "An example\n"
        "Study example on the CPUs of cluster example, weak scaling: 2 of 5 configurations can run here, in 10 runs.\n"
        "How long the runs take is unknown, because none was measured here before; with their timeouts, at most "
        "1 h 40 min.\n"
        "\n"
        "#  compiler  devices_per_node  global_batch  baseline\n"
        "1  none      1                 32            itself\n"
        "2  none      2                 64            #1\n"
        "\n"
        "Can't run here:\n"
        "compiler  devices_per_node  reason\n"
        "none      4                 needs 4 devices on 1 node; cluster example has 2 devices on 1 node\n"
        "xla       1                 xla is not built\n"
        "xla       2                 xla is not built"
    )


def test_the_time_is_that_of_earlier_runs() -> None:
    plan = two_sizes()
    small, large = (entry.configuration.identity for entry in plan.entries)
    assert "All runs take about 6 min, as long as earlier ones took here." in describe(plan, {small: 30, large: 90})
    text = describe(plan, {large: 100})
    assert (
        "The runs of 1 of the 2 configurations take about 5 min, as long as earlier ones took here; how long the "
        "others take is unknown."
    ) in text


def test_a_precision_is_said_with_its_limits() -> None:
    plan = two_sizes(precision=0.02, max_repeats=7, time_budget_minutes=30.0)
    assert "Rounds are added for intervals wider than ± 2 %, up to 7 in all, within 30 min." in describe(plan, {})
    assert "Rounds are added" not in describe(two_sizes(), {})


def test_what_does_not_fit_is_numbered_and_not_counted() -> None:
    plan = two_sizes()
    small, large = (entry.configuration.identity for entry in plan.entries)
    text = describe(plan, {}, {large: "MemoryError"}, {small: BatchSearch(512), large: BatchSearch(512, 224, 225, 10)})
    runs = plan.entries[0].configuration.repeats
    assert f"in {runs} runs." in text
    assert "Does not fit in memory, and is not run again:\n#  reason\n2  MemoryError\n" in text
    assert "#  batch\n1  at most 10 short runs left\n2  224, 225 does not fit" in text


def test_a_plan_in_blocks_says_what_its_ratios_lack() -> None:
    sentence = "Runs are measured in blocks: ratios have neither an interval nor a verdict."
    assert sentence in describe(two_sizes(order="blocks"), {})
    assert sentence not in describe(two_sizes(), {})


def test_a_configuration_whose_baseline_cannot_run_is_marked() -> None:
    def refuse(configuration: Configuration) -> str | None:
        return "refused" if configuration.world_size == 1 else None

    text = describe(build_plan(study(factors={"devices_per_node": [1, 2]}), cluster(), refuse), {})
    assert "2  2                 64            can't run here: no speedup" in text.splitlines()


def test_references_are_named_and_so_are_those_that_cannot_run() -> None:
    def refuse(configuration: Configuration) -> str | None:
        return "refused" if configuration.framework == "paddle_ps" and configuration.world_size == 2 else None

    example = study(
        questions=("comparison",),
        fixed={"strategy": "all_reduce", "model": "resnet50"},
        factors={"framework": ["paddle_ps", "torch_ddp"], "devices_per_node": [1, 2]},
        baseline=(DenominatorRule({"devices_per_node": 1}),),
        reference=(DenominatorRule({"framework": "paddle_ps"}),),
    )
    lines = describe(build_plan(example, cluster(), refuse), {}).splitlines()
    assert "1  paddle_ps  1                 32            itself    itself" in lines
    assert "3  torch_ddp  1                 32            itself    #1" in lines
    assert "4  torch_ddp  2                 64            #3        can't run here: no comparison" in lines


def many(can_run: Callable[[Configuration], bool], count: int = LONGEST_LIST + 1) -> Plan:
    """Return the plan of a study of so many batches; all are compared with the first one."""

    def refuse(configuration: Configuration) -> str | None:
        return None if can_run(configuration) else f"a seed of {configuration.seed % 30} is not built"

    example = study(
        fixed={"framework": "paddle_collective", "strategy": "all_reduce", "model": "resnet50"},
        factors={"seed": list(range(count))},
        baseline=(DenominatorRule({"seed": 0}),),
    )
    return build_plan(example, cluster(), refuse)


def test_a_list_that_is_not_too_long_is_complete() -> None:
    plan = many(lambda _: True, LONGEST_LIST)
    text = describe(plan, {})
    assert len(text.split("\n\n")[1].splitlines()) == 1 + LONGEST_LIST
    assert text == describe(plan, {}, complete=True)


def test_of_a_longer_list_the_first_and_the_last_rows_are_shown_and_the_rest_on_request() -> None:
    plan = many(lambda _: True)
    table = describe(plan, {}).split("\n\n")[1].splitlines()
    complete = describe(plan, {}, complete=True).split("\n\n")[1].splitlines()
    assert len(complete) == 1 + LONGEST_LIST + 1
    assert table[1 : 1 + ENDS] == complete[1 : 1 + ENDS]
    assert table[1 + ENDS].split() == ["…"] * 4
    assert table[2 + ENDS : -1] == complete[-ENDS:]
    assert table[-1] == f"{LONGEST_LIST + 1 - 2 * ENDS} configurations are not listed; plan with --all lists them."


def test_a_shortened_list_says_how_many_configurations_have_no_ratio() -> None:
    text = describe(many(lambda configuration: configuration.seed > 0, LONGEST_LIST + 2), {})
    assert f"{LONGEST_LIST + 1} configurations: no speedup, because the baseline can't run here." in text.splitlines()


def test_many_that_can_not_run_are_counted_by_reason() -> None:
    plan = many(lambda configuration: configuration.seed % 30 == 0, 301)
    lines = describe(plan, {}).split("Can't run here:\n")[1].splitlines()
    assert lines[0].split() == ["configurations", "reason"]
    assert lines[1].split(maxsplit=1) == ["10", "a seed of 1 is not built"]
    assert lines[-2].split(maxsplit=1) == [str(9 * 10), "9 other reasons"]
    assert lines[-1] == "plan with --all lists the 290 configurations."
    assert describe(plan, {}, complete=True).count("is not built") == 290


def test_runs_that_give_no_number_are_counted_apart() -> None:
    text = describe(two_sizes(), {}, unmeasured={"NCCL-reported": 2, "traced": 1})
    assert "Not in these runs, nor in their time: 2 NCCL-reported and 1 traced, which give no number." in text
    assert "nor in their time" not in describe(two_sizes(), {})
