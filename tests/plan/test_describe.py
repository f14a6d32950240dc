from dlperf_study.plan.describe import describe
from dlperf_study.plan.plan import build_plan
from dlperf_study.study.grid import DenominatorRule
from tests.study.examples import cluster, study


def test_a_plan_shows_what_runs_and_what_cannot():
    def refuse(configuration):
        return "xla is not built" if configuration.compiler == "xla" else None

    example = study(
        factors={"compiler": ["none", "xla"], "devices_per_node": [1, 2, 4]},
        exclude=({"compiler": ["xla"], "devices_per_node": [4]},),
        measurement={"repeats": 5},
    )
    assert describe(build_plan(example, cluster(1, 2), refuse)) == (
        "An example\n"
        "Study example on cluster example, weak scaling: 2 of 5 configurations can run here, in 10 runs.\n"
        "\n"
        "#  compiler  devices_per_node\n"
        "1  none      1                 baseline\n"
        "2  none      2\n"
        "\n"
        "Can't run here:\n"
        "compiler  devices_per_node  reason\n"
        "none      4                 needs 4 devices on 1 node; cluster example has 2 devices on 1 node\n"
        "xla       1                 xla is not built\n"
        "xla       2                 xla is not built"
    )


def test_a_configuration_whose_baseline_cannot_run_is_marked():
    def refuse(configuration):
        return "refused" if configuration.world_size == 1 else None

    text = describe(build_plan(study(factors={"devices_per_node": [1, 2]}), cluster(), refuse))
    assert "2  2                 no speedup: its baseline can't run here" in text.splitlines()


def test_references_are_marked_and_those_that_cannot_run_are_missed():
    def refuse(configuration):
        return "refused" if configuration.framework == "paddle_ps" and configuration.world_size == 2 else None

    example = study(
        questions=("comparison",),
        fixed={"strategy": "all_reduce", "model": "resnet50"},
        factors={"framework": ["paddle_ps", "torch_ddp"], "devices_per_node": [1, 2]},
        baseline=(DenominatorRule({"devices_per_node": 1}),),
        reference=(DenominatorRule({"framework": "paddle_ps"}),),
    )
    text = describe(build_plan(example, cluster(), refuse))
    assert "1  paddle_ps  1                 baseline; reference" in text.splitlines()
    assert "3  torch_ddp  1                 baseline" in text.splitlines()
    assert "4  torch_ddp  2                 no comparison: its reference can't run here" in text.splitlines()
