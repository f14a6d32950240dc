"""A study file that declares a program: what its configurations hold, and what is refused."""

import os
from dataclasses import replace

import pytest

from dlperf_study.core.errors import StudyFileError
from dlperf_study.execution.planning import load_cluster, plan_study
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.plan import Entry, varying
from dlperf_study.study.plan_description import describe
from dlperf_study.study.program import OWN_PROGRAM, Program
from dlperf_study.study.study_file import load_study
from tests.programs.studies import STUDY, write_study

#: The error, and what replaces what in the file.
ERRORS = {
    "a placeholder without a value": ("--width {width}", "--width {width} --depth {depth}"),
    "a misspelt placeholder": ("--width {width}", "--width {widht}"),
    "a factor without a placeholder": ("factors: {", "factors: {precision: [fp32, tf32], "),
    "a misspelt factor": ("{width: [1, 2]", "{widht: [1, 2]"),
    "an unknown key": ("  launch:", "  begin: here\n  launch:"),
    "an unknown start": ("launch: per-rank", "launch: somewhere"),
    "an empty command": ('"{python} train.py --width {width} --steps {steps} --rank {rank}"', '""'),
    "a command without placeholders": ("--width {width} --steps {steps}", "--width 3"),
    "a command that no shell reads": ('"{python} train.py', "\"{python} 'train.py"),
    "a secret in the command": ("--rank {rank}", "--api-key abcdef"),
    "a secret in the environment": ("  launch:", "  environment: {HF_TOKEN: abcdef}\n  launch:"),
    "a secret in a factor": ("factors: {width: [1, 2]", "factors: {width: [1, hf_aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH]"),
    "a secret in an included setting": (
        "factors:",
        "include: [{width: sk-abcdefghijklmnopqrstuvwxyzabcdefghi}]\nfactors:",
    ),
    "samples that contradict the batch": ("  launch:", "  samples_per_step: '{global_batch} * 2'\n  launch:"),
    "samples that are no number": ("  launch:", "  samples_per_step: '{width} +'\n  launch:"),
    "tokens that are no number": ("  launch:", "  tokens_per_step: '{width} / ({width} - 1)'\n  launch:"),
    "work that is nothing": ("  launch:", "  flops_per_sample: '{width} - 1'\n  launch:"),
    "a log format that is not there": ("  launch:", "  timing: log_format.yaml\n  launch:"),
    "data above the folder": ("  launch:", "  data: [../x]\n  launch:"),
    "a measurement of networks": ("warmup_steps: 2,", "warmup_steps: 2, communication_only_steps: 5,"),
    "a framework": ("constants: {", "constants: {framework: torch_ddp, "),
    "values of several kinds": ("{width: [1, 2]", "{width: [auto, 4, true]"),
    "a number and the same as a text": ("{width: [1, 2]", "{width: [1, '1']"),
    "an integer that no column holds": ("{width: [1, 2]", "{width: [1, 1000000000000000000000000000000]"),
    "a value that is a list": ("constants: {", "constants: {width: [1, 2], "),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_one_message(tmp_path, refused, name):
    old, new = ERRORS[name]
    assert old in STUDY
    with refused(StudyFileError):
        configurations(tmp_path, STUDY.replace(old, new))


def configurations(tmp_path, text=STUDY) -> list[Configuration]:
    study = load_study(write_study(tmp_path, text))
    return [study.configuration(point, "local") for point in study.points]


def test_a_configuration_holds_what_its_study_gives_and_nothing_else_is_stated(tmp_path):
    first, *_, last = configurations(tmp_path)
    assert (first.own_program, first.model, first.own_settings) == ("toy", "toy", {"width": 1})
    assert (last.world_size, last.global_batch, last.parameter_value("width")) == (2, 8, 2)
    displayed = first.displayed_values()
    assert displayed["width"] == 1
    assert {displayed[name] for name in ("image_size", "precision", "data_loader", "strategy")} == {None}
    assert (first.communication_only_steps, first.compute_only_steps, first.max_warmup_seconds) == (0, 0, 0)
    assert len({configuration.configuration_id for configuration in configurations(tmp_path)}) == 4


def test_a_parameter_of_this_package_may_be_stated(tmp_path):
    text = STUDY.replace("constants: {", "constants: {precision: amp_bf16, ")
    assert configurations(tmp_path, text)[0].displayed_values()["precision"] == "amp_bf16"


def test_samples_of_a_step_give_the_batch(tmp_path):
    text = STUDY.replace("batch_per_device: 4", "micro: 2").replace("--rank", "--micro {micro} --rank")
    text = text.replace("  launch:", "  samples_per_step: '{micro} * 3 * {processes}'\n  launch:")
    assert {configuration.batch_per_device for configuration in configurations(tmp_path, text)} == {6}


@pytest.mark.parametrize(
    ("command", "is_there"),
    [("{python}", True), ("sh", True), ("./start.sh", True), ("./stop.sh", False), ("no-such-launcher", False)],
)
def test_a_command_that_this_machine_has_not_is_an_obstacle(tmp_path, command, is_there):
    (tmp_path / "start.sh").touch()
    study = load_study(write_study(tmp_path, STUDY.replace("{python}", command)))
    plan = plan_study(study, load_cluster("local", [OWN_PROGRAM]))
    assert len(plan.unsupported) == (0 if is_there else 4)
    assert all(command in (entry.unsupported or "") for entry in plan.unsupported)


@pytest.mark.parametrize(
    ("launch", "command", "can_run"),
    [
        ("per-rank", "{python} train.py --steps {steps}", 4),
        ("per-node", "{python} train.py --steps {steps}", 2),
        ("per-node", "{python} train.py --steps {steps} --batch {batch_per_device}", 2),
        ("per-node", "torchrun --nproc-per-node {devices_per_node} train.py --steps {steps}", 4),
        ("first-node", "mpirun -np {processes} {python} train.py", 4),
        ("per-node", "{python} train.py --port {port_0}", 4),
    ],
)
def test_a_program_on_cpus_that_is_not_told_of_several_processes_is_not_run_as_several(
    tmp_path, monkeypatch, launch, command, can_run
):
    """The same process would train again, and half of the samples that count would be nobody's."""
    for name in ("torchrun", "mpirun"):
        (tmp_path / name).touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    text = STUDY.replace("launch: per-rank", f"launch: {launch}")
    text = text.replace(
        "{python} train.py --width {width} --steps {steps} --rank {rank}", f"{command} --width {{width}}"
    )
    plan = plan_study(load_study(write_study(tmp_path, text)), load_cluster("local", [OWN_PROGRAM]))
    assert len(plan.runnable) == can_run


@pytest.mark.parametrize(
    ("launch", "command", "can_run"),
    [
        ("per-node", "torchrun --nproc-per-node {devices_per_node} train.py", 1),
        ("per-node", "torchrun --nnodes {nodes} --nproc-per-node 1 --rdzv-endpoint node1:2000 train.py", 2),
        ("per-node", "accelerate launch --main_process_ip {host_0} train.py", 2),
        ("per-node", "accelerate launch --config_file two_nodes.yaml train.py", 2),
        ("per-node", "torchrun --standalone --master-port {port_0} train.py", 1),
        ("per-rank", "{python} train.py", 2),
        ("first-node", "mpirun --hostfile hosts {python} train.py", 2),
    ],
)
def test_a_program_of_several_nodes_is_told_of_the_others(tmp_path, launch, command, can_run):
    """Each node would train for itself, and the samples of all would be counted as those of one job."""
    text = STUDY.replace("launch: per-rank", f"launch: {launch}").replace("devices_per_node", "nodes")
    text = text.replace("{python} train.py --width {width} --steps {steps} --rank {rank}", command)
    text = text.replace("  launch:", "  timing: megatron\n  launch:")
    text = text.replace("width: [1, 2], ", "").replace("nproc-per-node {nodes}", "nproc-per-node {devices_per_node}")
    plan = plan_study(load_study(write_study(tmp_path, text)), load_cluster("slurm", [OWN_PROGRAM]))
    assert len(plan.runnable) == can_run
    assert all("--node-rank {node}" in (entry.unsupported or "") for entry in plan.unsupported)


def test_the_variables_of_a_queue_tell_of_other_nodes():
    program = Program("toy", ".", "python train.py", pass_environment=("SLURM_NODEID",))
    assert program.tells_nodes
    assert not replace(program, pass_environment=("HOME",)).tells_nodes


def test_under_strong_scaling_devices_share_the_global_batch(tmp_path):
    text = STUDY.replace("weak", "strong").replace("batch_per_device: 4", "global_batch: 8")
    assert [each.batch_per_device for each in configurations(tmp_path, text)] == [8, 4, 8, 4]


def test_a_batch_that_can_not_be_shared_is_no_error_of_the_tokens(tmp_path):
    text = STUDY.replace("weak", "strong").replace("batch_per_device: 4", "global_batch: 7")
    text = text.replace("  launch:", "  tokens_per_step: '{global_batch} * 8'\n  launch:")
    assert [each.batch_per_device for each in configurations(tmp_path, text)] == [7, 0, 7, 0]


def test_a_configuration_is_read_as_it_was_written(tmp_path):
    for configuration in configurations(tmp_path):
        assert Configuration.from_record(configuration.as_dict(), "x") == configuration


def test_a_setting_that_an_included_configuration_has_otherwise_varies(tmp_path):
    text = STUDY.replace("baseline:", "include: [{width: 1, devices_per_node: 1, script: other.py}]\nbaseline:")
    text = text.replace("train.py", "{script}").replace("constants: {", "constants: {script: train.py, ")
    entries = [
        Entry(configuration=configuration, baseline_id=configuration.configuration_id)
        for configuration in configurations(tmp_path, text)
    ]
    assert varying(entries, ("width", "devices_per_node")) == ("width", "devices_per_node", "script")


@pytest.mark.parametrize(
    ("amount", "is_known"),
    [("", False), ("  samples_per_step: 8\n", True), ("  tokens_per_step: 8\n", True)],
)
def test_that_no_throughput_will_come_is_said_before_anything_is_measured(tmp_path, amount, is_known):
    text = STUDY.replace("constants: {batch_per_device: 4}\n", "").replace("  launch:", f"{amount}  launch:")
    plan = plan_study(load_study(write_study(tmp_path, text)), load_cluster("local"))
    assert any("no throughput" in note for note in plan.notes) != is_known
    assert ("no throughput" in describe(plan)) != is_known
