import pandas as pd
import pytest

from dlperf_study.audit.published.points import Published
from dlperf_study.audit.published.same_question import SAME, Difference, SameQuestion
from dlperf_study.study.plan import build_plan
from dlperf_study.study.study_file import load_study
from tests.study.examples import anything_goes, cluster

PLSC, WIKI, VGG16 = "dlperf_paddle_plsc", "elasticdl_allreduce_wiki", "paddle_vgg16_cluster"


def throughputs(source):
    return Published.read((source,)).points


def configurations(study, **changes):
    """Return the configurations of a study as rows on GPUs, with some columns changed."""
    plan = build_plan(load_study(study), cluster(nodes=100, devices_per_node=8), anything_goes)
    rows = [
        {"configuration_id": entry.configuration.configuration_id, **entry.configuration.as_dict()}
        for entry in plan.entries
    ]
    return pd.DataFrame(rows).assign(**{"device": "gpu", **changes})


def configuration_ids(numbers, ours):
    return [match.configuration_ids for match in SameQuestion(numbers, ours).matches()]


@pytest.mark.parametrize(
    ("changes", "is_same"),
    [
        ({}, True),
        ({"batch_per_device": 64}, False),
        ({"framework": "torch_ddp"}, False),
        ({"classifier": "replicated"}, False),
        ({"optimizer": "sgd"}, True),
        ({"device": "cpu"}, False),
        ({"device": None}, False),
        ({"image_dataset": "imagenet"}, False),
        ({"data_loader": "python_queue"}, True),
        ({"memory_format": "nhwc"}, False),
        ({"gradient_compression": "fp16"}, False),
        ({"classes": pd.NA}, False),
    ],
)
def test_what_must_be_the_same(changes, is_same):
    ours = configurations("arcface", classifier="sharded", sample_ratio=1.0, classes=85742)
    assert all(configuration_ids(throughputs(PLSC), ours.assign(**changes))) == is_same
    assert any(configuration_ids(throughputs(PLSC), ours.assign(**changes))) == is_same


def test_another_library_is_another_question():
    numbers = throughputs(VGG16)
    ours = configurations("vgg16_parameter_server", device="cpu").query("framework.str.startswith('paddle_')")
    answered = numbers[[bool(found) for found in configuration_ids(numbers, ours)]]
    assert set(answered["framework"]) == {"PaddlePaddle"}
    assert len(answered) == (numbers["framework"] == "PaddlePaddle").sum() == 32


def test_numbers_on_cpus_stand_next_to_none_on_gpus_and_read_images_next_to_none_made_up():
    numbers = throughputs(WIKI)
    ours = configurations("allreduce", framework="tensorflow_mirrored")
    in_any_table = ("device", "framework", "data_loader", "image_dataset", "images")
    ours = ours.drop_duplicates(["device", *(name for name in SAME if name not in in_any_table)])
    for device in ("cpu", "gpu"):
        for data_loader, image_dataset in (("files", "cifar10"), ("synthetic_device", "none")):
            of_kind = ours.assign(device=device, data_loader=data_loader, image_dataset=image_dataset)
            is_answered = [bool(found) for found in configuration_ids(numbers, of_kind)]
            expected = (numbers["device"] == device) & (data_loader == "files")
            assert is_answered == list(expected)
    in_other_format = ours.assign(device="cpu", data_loader="files", image_dataset="cifar10", memory_format="nchw")
    assert not any(configuration_ids(numbers, in_other_format)), "TensorFlow's convolutions take NHWC on a CPU"


def test_a_number_without_a_match_has_the_differences_to_the_most_similar_configuration():
    ours = configurations("arcface").head(1).assign(device="cpu", classes=10)
    [alone, *others] = SameQuestion(throughputs(PLSC), ours).matches()
    assert alone.differences == (Difference("device", "gpu", "cpu"), Difference("classes", 85742, 10))
    assert {difference.name for difference in others[-1].differences} >= {"nodes", "devices_per_node"}


def test_the_most_similar_configuration_is_one_that_was_measured():
    near, far = configurations("arcface").head(1), configurations("arcface").head(1)
    pair = [near.assign(device="cpu", runs_completed=0), far.assign(device="cpu", classes=10, runs_completed=3)]
    numbers = throughputs(PLSC).head(1)
    [match] = SameQuestion(numbers, pd.concat(pair, ignore_index=True)).matches()
    assert match.differences == (Difference("device", "gpu", "cpu"), Difference("classes", 85742, 10))
    [match] = SameQuestion(numbers, pair[0]).matches()
    assert match.differences == (Difference("device", "gpu", "cpu"),)


def test_what_a_source_does_not_state_is_named():
    [match, *_] = SameQuestion(throughputs(PLSC), configurations("arcface")).matches()
    assert "data_loader" in match.unstated
    assert {"framework", "batch_per_device", "images"}.isdisjoint(match.unstated)


def test_a_configuration_without_a_number_has_the_differences_to_the_most_similar_number():
    ours = configurations("arcface")
    unmatched = SameQuestion(throughputs(PLSC), ours).unmatched()
    assert set(unmatched) == set(ours["configuration_id"]) - {
        name for match in configuration_ids(throughputs(PLSC), ours) for name in match
    }
    replicated = ours[(ours["classifier"] == "replicated") & (ours["classes"] == 85742)]
    assert unmatched[replicated["configuration_id"].iloc[0]] == (Difference("classifier", "sharded", "replicated"),)


def test_made_up_and_read_images_are_one_difference_where_the_source_names_its_data_source():
    ours = configurations("resnet50").query("precision == 'fp32' and data_loader == 'synthetic_device'").head(1)
    [match, *_] = SameQuestion(throughputs("dlperf_paddle_resnet50"), ours).matches()
    assert match.differences == (Difference("data_loader", "files", "synthetic_device"),)


def test_without_numbers_or_configurations_nothing_matches():
    numbers, ours = throughputs(PLSC), configurations("arcface")
    assert SameQuestion(numbers.head(0), ours).matches() == []
    assert SameQuestion(numbers.head(0), ours).unmatched() == {}
    assert [match.differences for match in SameQuestion(numbers, ours.head(0)).matches()] == [()] * len(numbers)
