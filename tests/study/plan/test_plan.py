import json
import subprocess
import sys

import pytest

from dlperf_study.core.errors import RecordError, StudyFileError
from dlperf_study.study.batch_search import searched
from dlperf_study.study.plan import Plan, build_plan
from tests.study.examples import anything_goes, cluster, rule, study


def plan_of(example=None, machines=None, unsupported=anything_goes):
    return build_plan(example or study(), machines or cluster(), unsupported)


def test_a_plan_keeps_the_order_of_the_study_and_its_own_factors_first():
    plan = plan_of()
    sizes = [(e.configuration.nodes, e.configuration.devices_per_node) for e in plan.entries]
    assert sizes == [(1, 1), (1, 4), (2, 1), (2, 4)]
    include = ({"nodes": [1], "devices_per_node": [1], "batch_per_device": [64], "compiler": ["xla"]},)
    assert plan_of(study(include=include)).factors == ("nodes", "devices_per_node", "batch_per_device", "compiler")
    assert plan_of(study(factors={"devices_per_node": [1, 2], "nodes": [1]})).factors == ("devices_per_node",)
    assert {(entry.reference_id, entry.is_reference) for entry in plan_of().entries} == {(None, False)}


def test_every_entry_has_a_baseline_in_the_plan():
    plan = plan_of(machines=cluster(1, 2))
    first = plan.entries[0]
    assert {entry.baseline_id for entry in plan.entries} == {first.configuration.configuration_id}
    assert [entry.is_baseline for entry in plan.entries] == [True, False, False, False]


def test_a_baseline_or_reference_that_is_not_in_the_plan_is_an_error(refused):
    with refused(StudyFileError):
        plan_of(study(baseline=(rule({"nodes": 3}),)))
    with refused(StudyFileError):
        plan_of(study(exclude=({"nodes": [1], "devices_per_node": [1]},)))
    with refused(StudyFileError):
        plan_of(study(**COMPARED, reference=(rule({"framework": "horovod_torch"}),)))
    rules = (rule({"framework": "paddle_collective"}, {"framework": ["torch_ddp"]}),)
    with refused(StudyFileError):
        plan_of(study(**COMPARED, reference=rules))


COMPARED = {
    "sections": ("comparison",),
    "constants": {"strategy": "all_reduce", "model": "resnet50"},
    "factors": {"framework": ["paddle_collective", "torch_ddp"], "devices_per_node": [1, 2]},
    "baseline": (rule({"devices_per_node": 1}),),
}


def test_every_entry_of_a_comparison_has_a_reference_in_the_plan(tmp_path):
    plan = plan_of(study(**COMPARED, reference=(rule({"framework": "paddle_collective"}),)))
    configuration_ids = [entry.configuration.configuration_id for entry in plan.entries]
    assert [configuration_ids.index(entry.reference_id) for entry in plan.entries] == [0, 1, 0, 1]
    assert [configuration_ids.index(entry.baseline_id) for entry in plan.entries] == [0, 0, 2, 2]
    assert [entry.is_reference for entry in plan.entries] == [True, True, False, False]
    plan.write(tmp_path / "plan.json")
    assert Plan.read(tmp_path / "plan.json") == plan


def test_what_the_cluster_is_too_small_for_is_unsupported(snapshot):
    plan = plan_of(study(factors={"nodes": [1, 4], "devices_per_node": [1, 8]}), cluster(1, 2, "local"))
    assert [entry.unsupported for entry in plan.entries] == snapshot
    assert plan.runnable == plan.entries[:1]
    assert plan.unsupported == plan.entries[1:]


def test_each_reason_of_too_many_is_told_and_nodes_do_not_add_up(snapshot):
    points = {"nodes": [1, 4], "threads_per_device": [1, 8]}
    plan = plan_of(study(factors=points), cluster(1, 2, "local"))
    assert plan.entries[3].unsupported == snapshot
    plan = plan_of(study(factors={"nodes": [1], "devices_per_node": [1, 4]}), cluster(4, 2))
    assert plan.entries[1].unsupported == snapshot


def test_all_reasons_are_given(snapshot):
    def refuse(configuration):
        return "not built" if configuration.devices_per_node == 4 else None

    plan = plan_of(machines=cluster(1, 8), unsupported=refuse)
    assert [entry.unsupported for entry in plan.entries] == snapshot


def test_a_global_batch_that_cannot_be_shared_is_unsupported(snapshot):
    strong = study(
        scaling="strong",
        factors={"global_batch": [64, 65], "devices_per_node": [1, 2]},
        baseline=(rule({"devices_per_node": 1}),),
    )
    plan = plan_of(strong)
    assert [entry.unsupported for entry in plan.entries] == snapshot
    assert [entry.configuration.batch_per_device for entry in plan.entries] == [64, 32, 65, 0]
    assert plan.entries[1].baseline_id == plan.entries[0].configuration.configuration_id


def test_global_batches_that_would_be_one_configuration_are_refused(refused):
    uneven = study(
        scaling="strong",
        factors={"global_batch": [64, 65], "devices_per_node": [1, 3]},
        baseline=(rule({"devices_per_node": 1}),),
    )
    with refused(StudyFileError):
        plan_of(uneven)


def test_a_plan_is_read_as_it_was_written(tmp_path):
    plan = plan_of(
        study(order_seed=3, target_ci=0.02, time_budget_minutes=30.0, largest_batch={"at_most": 512}), cluster(1, 4)
    )
    file = tmp_path / "example" / "plan.json"
    plan.write(file)
    assert [path.name for path in file.parent.iterdir()] == ["plan.json"]
    read = Plan.read(file)
    assert read == plan
    assert (read.order, read.order_seed) == ("interleaved", 3)
    assert (read.target_ci, read.max_repetitions, read.time_budget_minutes) == (0.02, 12, 30.0)
    assert (plan_of().max_repetitions, plan_of().largest_batch, read.largest_batch) == (None, None, 512)
    written = json.loads(file.read_text())
    assert [entry["configuration_id"] for entry in written["entries"]] == [
        e.configuration.configuration_id for e in plan.entries
    ]


def test_the_largest_batch_is_searched_where_the_study_says(tmp_path, refused):
    plan = plan_of(study(largest_batch={"at_most": 8, "where": {"devices_per_node": [4]}}), cluster(1, 4))
    plan.write(tmp_path / "plan.json")
    read = Plan.read(tmp_path / "plan.json")
    searched_devices = [each.configuration.devices_per_node for each in read.entries if each.is_searched]
    assert searched_devices == [4, 4]
    assert list(searched(read)) == [read.entries[1].configuration.configuration_id]
    with refused(StudyFileError):
        plan_of(study(largest_batch={"at_most": 8, "where": {"nodes": [7]}}))


def test_the_smallest_batch_that_is_tried_has_a_sample_in_each_micro_batch(refused):
    divided = {"factors": {"devices_per_node": [1, 4], "micro_batches": [1, 4]}, "baseline": (rule({}),)}
    plan = plan_of(study(**divided, largest_batch={"at_most": 8}))
    assert [first.batch_per_device for first in searched(plan).values()] == [1, 4, 1, 4]
    with refused(StudyFileError):
        plan_of(study(**divided, largest_batch={"at_most": 3}))
    assert len(searched(plan_of(study(**divided, largest_batch={"at_most": 3, "where": {"micro_batches": [1]}})))) == 2


@pytest.mark.parametrize("text", [None, "{", "[]"], ids=["missing", "no JSON", "a list"])
def test_a_file_that_is_no_plan_is_an_error(tmp_path, text, refused):
    file = tmp_path / "tiny-quick" / "plan.json"
    file.parent.mkdir()
    if text is not None:
        file.write_text(text)
    with refused(RecordError):
        Plan.read(file)


def test_pages_of_earlier_versions_are_left_out_of_a_plan(tmp_path):
    file = tmp_path / "plan.json"
    plan_of(study()).changed(sections=("scaling", "replication", "compliance")).write(file)
    assert Plan.read(file).sections == ("scaling",)
    plan_of(study()).changed(sections=("scaling", "compliances")).write(file)
    with pytest.raises(RecordError, match="sections"):
        Plan.read(file)


def without(key):
    return lambda values: {name: value for name, value in values.items() if name != key}


def in_entry(change):
    """Return the change of the first entry of a plan."""
    return lambda plan: plan | {"entries": [change(plan["entries"][0]), *plan["entries"][1:]]}


def configured(**values):
    """Return the change of the configuration of an entry."""
    return lambda entry: entry | {"configuration": entry["configuration"] | values}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda plan: {"format": 1}, "format is 1; this program reads format 4"),
        (without("title"), "title is missing"),
        (lambda plan: plan | {"scaling": "odd"}, "scaling is 'odd'; the choices are 'weak' or 'strong'"),
        (lambda plan: plan | {"factors": ["x"]}, "factors has 'x'"),
        (lambda plan: plan | {"max_repetitions": 0}, "max_repetitions is 0; it must be at least 1"),
        (lambda plan: plan | {"entries": plan["entries"] * 2}, "two of its .* entries are the same configuration"),
        (in_entry(without("baseline_id")), r"entries\[0\].baseline_id is missing"),
        (in_entry(without("reference_id")), r"entries\[0\].reference_id is missing"),
        (in_entry(lambda entry: entry | {"baseline_id": "x"}), "the baseline of .* is 'x', which is no entry of"),
        (in_entry(configured(seed=9)), "has the parameters of"),
        (in_entry(configured(repetitions=10**400)), "repetitions is 10+"),
    ],
)
def test_a_damaged_plan_is_an_error(tmp_path, change, message):
    file = tmp_path / "plan.json"
    plan_of().write(file)
    file.write_text(json.dumps(change(json.loads(file.read_text()))))
    with pytest.raises(RecordError, match=message):
        Plan.read(file)


def test_processes_that_only_need_the_values_need_the_standard_library_alone():
    modules = ("study.configuration", "study.job", "study.grid")
    modules += ("machines.cluster", "machines.cluster.hardware")
    code = (
        "import sys; before = set(sys.modules); "
        + "; ".join(f"import dlperf_study.{module}" for module in modules)
        + "; "
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}; "
        "print(sorted(new - set(sys.stdlib_module_names)))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "['dlperf_study']"


SEQUENCES = {"model": "gpt_tiny", "framework": "torch_ddp", "strategy": "all_reduce", "sequence_length": 32}


def test_ratios_of_tokens_need_tokens_in_every_configuration(refused):
    of_images = study(throughput_unit="tokens")
    with refused(StudyFileError):
        plan_of(of_images)
    of_sequences = study(throughput_unit="tokens", constants=SEQUENCES)
    assert plan_of(of_sequences).throughput_unit == "tokens"
    images_too = ({"nodes": [1], "devices_per_node": [2], "model": ["mobilenet_v2"], "sequence_length": [0]},)
    with refused(StudyFileError):
        build_plan(
            study(throughput_unit="tokens", constants=SEQUENCES, include=images_too),
            cluster(nodes=2, devices_per_node=4),
            anything_goes,
        )
