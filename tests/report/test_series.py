from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from dlperf_study.report.labels import Labels
from dlperf_study.report.series import all_groups, all_series, titled_published_labels, value_label
from tests.evidence_factory import Planned, configuration
from tests.report.conftest import ALONE, study

Parameters = dict[str, object]


def named(**changes: object) -> Parameters:
    return {"framework": "paddle_collective", "strategy": "all_reduce", **changes}


def groups_of(pairs: list[tuple[Parameters, Parameters]]) -> list[tuple[str, list[str]]]:
    """Return heading and labels of each group, from pairs of a configuration and its reference."""
    planned = [Planned(configuration(**own), ALONE, reference=configuration(**other)) for own, other in pairs]
    return [(group.label, list(group.rows["label"])) for group in all_groups(study(*planned))]


COMPILED = {"precision": "amp_bf16", "compiler": "torch_compile"}


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([{}, {"precision": "tf32"}, COMPILED], ["fp32", "TF32", "amp bf16 · torch.compile"]),
        ([{}, {"precision": "amp_bf16"}, COMPILED], ["fp32", "amp bf16", "amp bf16 · torch.compile"]),
        ([{}, {"compiler": "torch_compile"}], ["not compiled", "torch.compile"]),
        (
            [{"devices_per_node": 2}, {"nodes": 2}, {"devices_per_node": 2, "precision": "tf32"}],
            ["fp32", "fp32 · Nodes 2", "TF32"],
        ),
    ],
)
def test_a_default_goes_without_saying_where_something_else_names_the_series(values, labels):
    planned = [Planned(configuration(**named(), **changes), ALONE) for changes in values]
    assert [series.label for series in all_series(study(*planned))] == labels


def test_a_group_is_named_by_what_all_share_and_a_row_by_how_it_differs(snapshot):
    ours = named()
    others = [
        named(framework="horovod_torch"),
        named(framework="paddle_ps", strategy="async", parameter_servers=1),
        named(framework="torch_ddp", devices_per_node=2),
    ]
    [group] = groups_of([(others[0], ours), (ours, ours), *((other, ours) for other in others[1:])])
    assert group == snapshot


def test_groups_that_differ_in_a_factor_say_so():
    pairs = [
        (named(framework=name, batch_per_device=batch), named(batch_per_device=batch))
        for batch in (32, 64)
        for name in ("paddle_collective", "torch_ddp")
    ]
    labels = [label for label, members in groups_of(pairs) if members == ["PaddlePaddle collective", "PyTorch DDP"]]
    assert [label.split(" · ")[1] for label in labels] == ["Batch per device 32", "Batch per device 64"]


def test_a_reference_alone_is_called_by_its_framework():
    assert groups_of([(named(), named())]) == [("ResNet-50 · 1 device · nothing compared", ["PaddlePaddle collective"])]


def test_other_differences_are_those_without_framework_and_strategy():
    ours, served = named(), named(framework="paddle_ps", strategy="async", parameter_servers=1)
    spread = named(framework="torch_ddp", nodes=2, precision="amp_fp16")
    planned = [Planned(configuration(**one), ALONE, reference=configuration(**ours)) for one in (ours, served, spread)]
    [group] = all_groups(study(*planned))
    assert list(group.rows["other_differences"]) == ["", "1 server", "amp fp16 · 2 nodes"]


def test_devices_of_several_nodes_differ_from_those_of_one():
    pairs = [(named(framework=name, nodes=2), named(nodes=2)) for name in ("paddle_collective", "torch_ddp")]
    wider = (named(framework="torch_ddp", nodes=2, devices_per_node=2), named(nodes=2))
    [(label, members)] = groups_of([*pairs, wider])
    assert (label, members[2]) == ("ResNet-50 · against 2 devices on 2 nodes", "PyTorch DDP · 4 devices")


def test_groups_of_one_model_are_its_own():
    both = [configuration(model=model) for model in ("resnet50", "mobilenet_v2")]
    dataset = study(*(Planned(each, ALONE, reference=each) for each in both))
    [group] = all_groups(dataset, "mobilenet_v2")
    assert group.label == "MobileNetV2 · 1 device · nothing compared"
    assert len(all_groups(dataset)) == 2
    assert all_groups(study(*(Planned(each, ALONE) for each in both))) == [], "without references"


@pytest.mark.parametrize(
    ("factor", "value", "label"),
    [
        ("cpu_limit", 0.0, "no CPU limit"),
        ("cpu_limit", 0.3, "CPU limit 0.3 cores"),
        ("compiler", "none", "not compiled"),
        ("image_dataset", "none", "synthetic images"),
        ("data_workers", -1, "Data workers by default"),
        ("cycle_time_ms", 2.5, "Cycle time 2.5 ms"),
        ("memory_limit_mib", 640, "Memory limit 640 MiB"),
        ("compiler", "torch_compile", "torch.compile"),
        ("loss_scaling", "none", "loss not scaled"),
        ("loss_scaling", "static", "Loss scaling static"),
        ("precision", "amp_fp16_o2", "amp fp16 O2"),
    ],
)
def test_a_level_is_understood_alone(factor, value, label):
    assert value_label(factor, value) == label


def test_the_line_of_a_published_table_has_its_title_and_what_sets_it_apart_in_the_table():
    tables = {name: SimpleNamespace(title=f"Table {name}") for name in "AB"}
    others = dict.fromkeys(("mode", "parameter_servers", "loss_scaling", "compiler", "data_loader", "extra"))
    lines = [("A", "x", 32, "fp32"), ("B", "y", 32, "fp32"), ("B", "y", 64, "fp32"), ("B", "z", 64, "amp_fp16")]
    points = [
        {"source": "s", "table": table, "series": position, "program": program, **others}
        | {"batch_per_device": batch, "precision": precision}
        for position, (table, program, batch, precision) in enumerate(lines)
    ]
    published = SimpleNamespace(sources={"s": SimpleNamespace(tables=tables)})
    labels = titled_published_labels(published, pd.DataFrame(points))
    assert labels[0] == "Table A"
    assert all(label.startswith("Table B · ") for label in labels[1:])
    assert labels.is_unique
    # In one table alone no title sets a line apart.
    [*of_b] = titled_published_labels(published, pd.DataFrame(points[1:]))
    assert not any("Table" in label for label in of_b)


def test_a_level_that_is_not_stated_is_another_one_than_the_usual():
    """Of ingested logs some may say nothing of a number that is the same in most of the others."""
    sizes = (224, 224, 224, 64, 128)
    planned = [configuration(batch_per_device=4 + index, image_size=size) for index, size in enumerate(sizes)]
    dataset = study(*(Planned(each, ALONE, reference=planned[0]) for each in planned))
    unstated = dataset.configurations["image_size"].mask(dataset.configurations["image_size"] == 128)
    unstated = replace(dataset, configurations=dataset.configurations.assign(image_size=unstated.astype("Int64")))
    assert "Image size not stated" in all_series(unstated)[-1].label
    [group] = all_groups(unstated)
    assert "Image size not stated" in group.members[-1].label
    assert Labels(unstated).series(group.members[-1].configuration_id) == "ResNet-50 (Batch per device 8)"
