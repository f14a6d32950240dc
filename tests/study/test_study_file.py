"""What a study file becomes: the study, its quick mode, and every study that comes with the package."""

import pytest

from dlperf_study.core.resources import PARAMS
from dlperf_study.study.configuration import FIELD_NAMES, parameters_in_scope, study_parameters
from dlperf_study.study.parameter import Scope
from dlperf_study.study.study_file import load_study
from tests.study.examples import STUDIES, STUDY, rule, write


def test_a_valid_file_becomes_a_study(tmp_path):
    study = load_study(write(tmp_path))
    assert (study.name, study.scaling, study.is_quick, study.sections) == ("example", "weak", False, ("scaling",))
    assert study.factors == {"model": ["resnet50", "mobilenet_v2"], "devices_per_node": [1, 2]}
    assert study.baseline == (rule({"devices_per_node": 1}),)
    assert (study.order, study.order_seed) == ("interleaved", 0)
    in_blocks = load_study(write(tmp_path, STUDY + "order: sequential\norder_seed: 7\n"))
    assert (in_blocks.order, in_blocks.order_seed) == ("sequential", 7)


@pytest.mark.parametrize(("given", "share"), [("2 %", 0.02), ("0.5%", 0.005), ("0.02", 0.02)])
def test_a_precision_is_a_percentage_or_a_share(tmp_path, given, share):
    study = load_study(write(tmp_path, STUDY + f"target_ci: {given}\nmax_repetitions: 7\ntime_budget_minutes: 30\n"))
    assert study.target_ci == pytest.approx(share)
    assert (study.max_repetitions, study.time_budget_minutes) == (7, 30.0)


def test_a_quick_variant_has_no_precision(tmp_path):
    text = STUDY + "target_ci: 2 %\nmax_repetitions: 7\nquick: {measurement: {repetitions: 1}}\n"
    quick = load_study(write(tmp_path, text), quick=True)
    assert (quick.target_ci, quick.max_repetitions, quick.measurement) == (None, None, {"repetitions": 1})


def test_a_baseline_may_be_given_as_rules(tmp_path):
    rules = (
        "baseline:\n  - {where: {model: resnet50}, values: {devices_per_node: 2}}\n  - values: {devices_per_node: 1}"
    )
    study = load_study(write(tmp_path, STUDY.replace("baseline: {devices_per_node: 1}", rules)))
    assert study.baseline == (
        rule({"devices_per_node": 2}, {"model": ["resnet50"]}),
        rule({"devices_per_node": 1}),
    )


def test_a_reference_may_be_given_as_values_or_as_rules(tmp_path):
    compared = STUDY.replace("[scaling]", "[comparison]")
    values = compared + "reference: {framework: torch_ddp}\n"
    assert load_study(write(tmp_path, values)).reference == (rule({"framework": "torch_ddp"}),)
    rules = compared + "reference: [{where: {model: resnet50}, values: {framework: paddle_ps}}, {values: {}}]\n"
    expected = (rule({"framework": "paddle_ps"}, {"model": ["resnet50"]}), rule({}))
    assert load_study(write(tmp_path, rules)).reference == expected


def test_quick_merges_mappings_by_key_and_replaces_lists(tmp_path):
    text = STUDY + (
        "include: [{model: vgg16, devices_per_node: 1}]\n"
        "measurement: {warmup_steps: 7, repetitions: 5}\n"
        "quick:\n"
        "  constants: {image_size: 32}\n"
        "  factors: {model: [mobilenet_v2]}\n"
        "  include: []\n"
        "  baseline: {nodes: 1}\n"
        "  measurement: {repetitions: 1}\n"
    )
    quick = load_study(write(tmp_path, text), quick=True)
    assert (quick.name, quick.is_quick) == ("example-quick", True)
    assert quick.constants == {"framework": "paddle_collective", "strategy": "all_reduce", "image_size": 32}
    assert quick.factors == {"model": ["mobilenet_v2"], "devices_per_node": [1, 2]}
    assert quick.include == ()
    assert quick.baseline == (rule({"devices_per_node": 1, "nodes": 1}),)
    assert quick.measurement == {"warmup_steps": 7, "repetitions": 1}
    assert load_study(write(tmp_path, text)).factors["model"] == ["resnet50", "mobilenet_v2"]


def test_a_study_gives_all_parameters_but_those_of_the_plan():
    given = {*study_parameters()} - {"global_batch"} | {*parameters_in_scope(Scope.MEASUREMENT)}
    assert given == {*FIELD_NAMES} - {"study", "cluster", "quick", "own_program", "settings", "program_hash"}


def test_every_study_and_its_quick_variant_can_be_read():
    names = sorted(path.stem for path in (PARAMS / "studies").glob("*.yaml"))
    assert ", ".join(names) == STUDIES
    for name in names:
        assert load_study(name).points
        assert load_study(name, quick=True).points
