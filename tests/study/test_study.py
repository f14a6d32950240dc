import pytest

from dlperf_study.core.errors import StudyFileError
from tests.study.examples import rule, study


def values(points, *names):
    return [tuple(point[name] for name in names) for point in points]


def test_the_grid_is_complete_and_the_last_factor_the_fastest():
    assert values(study().points, "nodes", "devices_per_node") == [(1, 1), (1, 4), (2, 1), (2, 4)]
    point = study().points[0]
    assert (point["image_size"], point["parameter_servers"], point["precision"]) == (224, 0, "fp32")


def test_include_adds_the_product_of_its_lists_to_the_fixed_values():
    points = study(include=({"nodes": [4], "devices_per_node": [4, 8], "strategy": ["async"]},)).points
    assert values(points[4:], "nodes", "devices_per_node", "strategy", "model") == [
        (4, 4, "async", "resnet50"),
        (4, 8, "async", "resnet50"),
    ]


def test_exclude_drops_what_matches_all_keys_also_by_default():
    points = study(exclude=({"nodes": [2], "devices_per_node": [1, 8]},)).points
    assert values(points, "nodes", "devices_per_node") == [(1, 1), (1, 4), (2, 4)]
    with pytest.raises(StudyFileError, match="exclude leaves no configuration"):
        list(study(exclude=({"parameter_servers": [0]},)).points)


def test_what_matches_nothing_or_everything_twice_is_an_error(refused):
    with refused(StudyFileError):
        list(study(exclude=({"nodes": [2]}, {"nodes": [3, 5], "parameter_servers": [0]})).points)
    with refused(StudyFileError):
        list(study(include=({"nodes": [2], "devices_per_node": [4], "parameter_servers": [0]},)).points)
    example = study(**SERIES, baseline=(PS_RULE,))
    with refused(StudyFileError):
        example.declared_denominator(example.points[0], "baseline")


def test_a_baseline_is_the_same_point_with_the_values_put_in():
    example = study()
    last = example.points[-1]
    assert example.declared_denominator(last, "baseline") == {**last, "nodes": 1, "devices_per_node": 1}


SERIES = {
    "factors": {"framework": ["paddle_collective"], "strategy": ["all_reduce"], "devices_per_node": [1, 2]},
    "constants": {"model": "resnet50"},
    "include": (
        {"framework": ["paddle_ps"], "strategy": ["local"], "devices_per_node": [1]},
        {"framework": ["paddle_ps"], "strategy": ["async"], "parameter_servers": [1], "devices_per_node": [1, 2]},
    ),
}
PS_RULE = rule({"strategy": "local", "parameter_servers": 0, "devices_per_node": 1}, {"framework": ["paddle_ps"]})


def test_each_series_has_its_own_baseline():
    example = study(**SERIES, baseline=(PS_RULE, rule({"devices_per_node": 1})))
    points = example.points
    baselines = [points.index(example.declared_denominator(point, "baseline")) for point in points]
    assert baselines == [0, 0, 2, 2, 2]


def test_a_baseline_with_another_baseline_is_an_error(refused):
    rules = (
        rule({"devices_per_node": 1}, {"devices_per_node": [4]}),
        rule({"nodes": 2}, {"devices_per_node": [1]}),
    )
    example = study(baseline=rules)
    with refused(StudyFileError):
        example.declared_denominator(example.points[1], "baseline")


def test_a_configuration_has_the_studys_name_the_cluster_and_the_measurement():
    example = study(measurement={"repetitions": 5, "warmup_steps": 2}, is_quick=True, name="example-quick")
    configuration = example.configuration(example.points[3], "local")
    assert (configuration.study, configuration.cluster, configuration.quick) == ("example-quick", "local", True)
    assert (configuration.repetitions, configuration.warmup_steps, configuration.world_size) == (5, 2, 8)


def test_strong_scaling_shares_the_global_batch():
    example = study(scaling="strong", factors={"global_batch": [96], "devices_per_node": [1, 2, 3, 5]}, baseline=())
    shares = [example.configuration(point, "local").batch_per_device for point in example.points]
    assert shares == [96, 48, 32, 0]
