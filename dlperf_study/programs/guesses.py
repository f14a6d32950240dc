"""What is guessed of a training program from the files of its repository: how it is started, and what it is told.

A guess is a proposal, which whoever writes the study reads and mends: nothing is started because of one. Standard
library only.
"""

import os
import re
import shlex
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from dlperf_study.study.program import FIRST_NODE, LOG, PER_NODE, PER_RANK, RECORDER, find_placeholders

#: Names of scripts that train, the likeliest first.
_SCRIPTS = (
    *("train*.py", "main*.py", "run*.py", "pretrain*.py", "finetune*.py", "tools/train*.py", "*/train*.py"),
    *("*multi*.py", "*ddp*.py", "*.py"),
)
#: What a script imports or calls, and how such a script is started.
_LAUNCHERS = (
    (r"\bhorovod\b", "mpirun -np {processes} --hostfile {hostfile} {python}"),
    (r"\bmpi4py\b", "mpirun -np {processes} --hostfile {hostfile} {python}"),
    # By ssh it would pass the request of the recorder to no other node.
    (
        r"\bdeepspeed\b",
        "deepspeed --hostfile {hostfile} --no_ssh --node_rank {node} --master_addr {host_0} --master_port {port_0}",
    ),
    (
        r"\bpaddle\.distributed\b|\bfleet\b",
        "{python} -m paddle.distributed.launch --nnodes {nodes} --rank {node} --nproc_per_node {devices_per_node} "
        "--master {host_0}:{port_0}",
    ),
    (
        r"\baccelerate\b",
        "accelerate launch --num_machines {nodes} --machine_rank {node} --num_processes {processes} "
        "--main_process_ip {host_0} --main_process_port {port_0}",
    ),
    (
        r"torch\.distributed|DistributedDataParallel|init_process_group|\btransformers\b|\blightning\b",
        "torchrun --nnodes {nodes} --node-rank {node} --nproc-per-node {devices_per_node} --master-addr {host_0} "
        "--master-port {port_0}",
    ),
)
#: Options for the samples of a step of one device, and for the number of steps, as scripts call them.
_BATCHES = ("per_device_train_batch_size", "micro_batch_size", "batch_size_per_gpu", "train_batch_size", "batch_size")
_STEPS = ("max_steps", "max_iters", "train_iters", "num_steps", "iterations", "steps")
#: Those of them that are fields of the arguments of transformers' `Trainer`.
_TRAINER_OPTIONS = ("per_device_train_batch_size", "max_steps")
#: The options that a command needs, by their names in scripts, with their placeholders.
_ARGUMENTS = ((_BATCHES, "batch_per_device"), (_STEPS, "steps"))
#: Programs that start the processes of all nodes from the first one.
_FIRST_NODE = ("mpirun", "mpiexec", "horovodrun", "deepspeed", "srun")
_TORCH_LAUNCHER = re.compile(r"\btorchrun\b|\btorch\.distributed\.(?:run|launch)\b|\baccelerate launch\b")
_RECORDER = re.compile(r"\b(?:from|import)\s+(?:dlperf_study|record)\b")


@dataclass(frozen=True)
class Guess:
    """How a program may be started, and what was guessed of that, a sentence each."""

    command: str
    launch: str
    timing: str
    notes: tuple[str, ...]


def guess_program(folder: Path) -> Guess:
    """Return how the training script of a repository may be started."""
    scripts = (path for pattern in _SCRIPTS for path in sorted(folder.glob(pattern)) if path.is_file())
    script = next(scripts, None)
    if script is None:
        note = "no script that trains was found: replace train.py"
        return Guess("{python} train.py --batch-size {batch_per_device} --steps {steps}", PER_NODE, RECORDER, (note,))
    source, name = _source(script), script.relative_to(folder).as_posix()
    launcher, launcher_note = _guess_launcher(source)
    arguments = [_option(source, names, placeholder) for names, placeholder in _ARGUMENTS]
    command = " ".join([launcher, shlex.quote(name), *filter(None, arguments)])
    timing, timing_note = guess_timing([script])
    notes = [f"the script is {name}", launcher_note, note_python(command)]
    for (_, placeholder), argument in zip(_ARGUMENTS, arguments, strict=True):
        if not argument:
            notes.append(f"no option for {placeholder} was found: add your script's option, with {{{placeholder}}}")
    return Guess(command, guess_launch(command), timing, tuple(filter(None, [*notes, timing_note])))


def guess_launch(command: str) -> str:
    """Return where a command is to be started: where it starts the processes of all nodes itself, on the first one."""
    if {"rank", "local_rank"} & set(find_placeholders(command)):
        return PER_RANK
    launcher, *arguments = shlex.split(command)
    # So DeepSpeed starts the processes of its own node alone.
    starts_all = Path(launcher).name in _FIRST_NODE and "--no_ssh" not in arguments
    return FIRST_NODE if starts_all else PER_NODE


def guess_timing(scripts: Sequence[Path]) -> tuple[str, str]:
    """Return where step times come from, and why: from the recorder, if one of the scripts has it."""
    for script in scripts:
        if script.is_file() and _RECORDER.search(_source(script)):
            return RECORDER, f"step times come from the recorder in {script.name}"
    return LOG, "step times come from its output, if the format is known: see docs/log-formats.md"


def guess_environment(command: str, factors: Collection[str]) -> tuple[dict[str, str], str]:
    """Return the variables without which numbers of devices can't be compared, and why; a set one keeps its value.

    PyTorch's launchers leave all cores to a process that is alone on its node, and give each of several one thread.
    """
    if "devices_per_node" not in factors or not _TORCH_LAUNCHER.search(command):
        return {}, ""
    threads = os.environ.get("OMP_NUM_THREADS", "1")
    reason = "torchrun gives one process all cores, and several processes one core each"
    note = f"OMP_NUM_THREADS is {threads}: by default {reason}"
    return {"OMP_NUM_THREADS": threads}, note


def note_python(command: str) -> str:
    """Return which Python a command has, if it has one that is not the Python of the shell; else nothing."""
    in_shell = which("python") or which("python3")
    if (
        "python" not in find_placeholders(command)
        or not in_shell
        or Path(in_shell).parent == Path(sys.executable).parent
    ):
        return ""
    of_shell = f"write python for {in_shell}, the Python of your shell"
    return f"{{python}} is the Python of this package, {sys.executable}; {of_shell}"


def find_scripts(command: str, folder: Path) -> list[Path]:
    """Return the scripts of Python that a command names in a folder."""
    paths = [folder / argument for argument in shlex.split(command) if argument.endswith(".py")]
    return [path for path in paths if path.is_file()]


def _source(script: Path) -> str:
    return script.read_text(encoding="utf-8", errors="replace")


def _option(source: str, names: Sequence[str], placeholder: str) -> str:
    """Return the option of a script that has one of these names, with a placeholder; empty if it has none."""
    for name in names:
        option = re.search(rf"--({name.replace('_', '[-_]')})\b", source)
        if option:
            return f"--{option[1]}={{{placeholder}}}"
        # Its parser makes options of the fields of transformers' arguments, which the script does not name.
        if "HfArgumentParser" in source and name in _TRAINER_OPTIONS:
            return f"--{name}={{{placeholder}}}"
        # As nanoGPT's configurator takes what is assigned at the top of a script.
        if "configurator" in source and re.search(rf"^{name} *=", source, re.MULTILINE):
            return f"--{name}={{{placeholder}}}"
    return ""


def _guess_launcher(source: str) -> tuple[str, str]:
    """Return what starts the processes of a script, and why."""
    for pattern, launcher in _LAUNCHERS:
        if mention := re.search(pattern, source):
            # The module after `{python} -m`, or the executable.
            name = next(argument for argument in launcher.split() if argument not in ("{python}", "-m"))
            return launcher, f"it is started by {name}, because it mentions {mention[0]}"
    return "{python}", "it seems to train on one process: no launcher was found in it"
