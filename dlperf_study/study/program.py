"""A program of the user, in a repository of their own: how a study file declares it, and what its command becomes.

Standard library only.
"""

import ast
import hashlib
import json
import math
import operator
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePath
from typing import Any

from dlperf_study.core.restoring import restored
from dlperf_study.study.parallel_parameters import parallel_layout
from dlperf_study.study.parameter import Scalar

#: How its command is started: once on each node, on the first node alone, or once for each rank.
PER_NODE, FIRST_NODE, PER_RANK = LAUNCHES = "per-node", "first-node", "per-rank"
#: Where its step times come from, if not from what it prints.
RECORDER = "recorder"
#: Its step times are in its log, of a format that is detected from the lines.
LOG = "log"
#: What a configuration of a program has as its framework and its strategy, unless the study says more.
OWN_PROGRAM = "program"
#: How much work a step is.
AMOUNTS = ("samples_per_step", "tokens_per_step", "flops_per_sample")
#: What a launcher fills in when a run starts, besides those with the number of a node or a port.
_AT_THE_START = re.compile(r"(host|interface|devices|port|server_host)_\d+|run")
#: What follows from a configuration and its position among the processes.
DERIVED_PLACEHOLDERS = (
    *("python", "processes", "world_size", "global_batch", "steps", "node", "rank", "local_rank", "repetition"),
    *("hostfile", "hosts"),
)
#: What tells a program that other nodes train.
_NODE_NAMES = {"nodes", "processes", "world_size", "node", "rank", "hostfile", "hosts"}
#: What tells a program how many processes train.
_PROCESS_NAMES = _NODE_NAMES | {"devices_per_node", "local_rank", "tensor_parallel", "pipeline_parallel"}
#: What a command or the name of a variable has that says by itself where the other nodes are.
_NODES_BY_HAND = re.compile(
    r"--(?:nnodes|num[-_]machines|num[-_]nodes|nodes|rdzv|config[-_]file|hostfile|hosts|master[-_]addr)|MASTER_ADDR|NODE_RANK|"
    r"WORLD_SIZE|TF_CONFIG|(?:SLURM|PMI|OMPI|FLUX|PALS|LSB|PBS|PADDLE|DMLC|COORDINATOR|JAX)_"
)
#: ``{{`` and ``}}`` are braces.
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([a-z]\w*)\}", re.IGNORECASE | re.ASCII)
_BRACES = {"{{": "{", "}}": "}"}
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


@dataclass(frozen=True)
class Program:
    """A training program of the user, as a study file declares it.

    ``folder``: its files, copied for every run. ``command``: one command line, with placeholders in braces.
    ``launch``: ``per-node``, ``first-node`` or ``per-rank``. ``timing``: the recorder, or the log format of what it
    prints. ``samples_per_step`` and ``tokens_per_step``: of all processes together, as arithmetic of placeholders.
    ``environment`` has placeholders too; ``pass_environment`` are names. ``data``: paths that every node must have;
    those that are relative, as to the folder, are linked into the copy of each run.
    ``booleans``: how its command writes false and true. ``log_format``: the declaration of the format, if the study has
    one of its own. ``study_folder``: that of the study file, whose files are no part of the program. ``digest``: of all
    this and of its files; ``commit``, ``dirty`` and ``remote`` are those of its repository.
    """

    name: str
    folder: str
    command: str
    launch: str = PER_NODE
    timing: str = RECORDER
    samples_per_step: str = ""
    tokens_per_step: str = ""
    flops_per_sample: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    pass_environment: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    booleans: tuple[str, str] = ("False", "True")
    log_format: str = ""
    study_folder: str = ""
    digest: str = ""
    commit: str = ""
    dirty: bool = False
    remote: str = ""

    @property
    def records_steps(self) -> bool:
        """Whether its processes record their steps themselves."""
        return self.timing == RECORDER

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The names in braces that a study or this package gives."""
        amounts = (self.samples_per_step, self.tokens_per_step, self.flops_per_sample)
        names: dict[str, None] = {}
        for template in (self.command, *self.environment.values(), *amounts):
            names |= dict.fromkeys(find_placeholders(template))
        return tuple(name for name in names if not _AT_THE_START.fullmatch(name))

    @property
    def tells_processes(self) -> bool:
        """Whether its command or environment has the number of processes."""
        return any(name in _PROCESS_NAMES or _is_filled_in_at_start(name) for name in self._filled_in)

    @property
    def tells_nodes(self) -> bool:
        """Whether its command or its variables can say where other nodes are."""
        if any(map(_NODES_BY_HAND.search, (self.command, *self.environment, *self.pass_environment))):
            return True
        return any(name in _NODE_NAMES or name.startswith("host_") for name in self._filled_in)

    @property
    def _filled_in(self) -> list[str]:
        """The names in braces of its command and environment."""
        return [name for template in (self.command, *self.environment.values()) for name in find_placeholders(template)]

    @property
    def settings(self) -> tuple[str, ...]:
        """The placeholders of which only a study can know the value."""
        return tuple(name for name in self.placeholders if name not in DERIVED_PLACEHOLDERS)

    @property
    def data_links(self) -> dict[str, str]:
        """Its data by absolute path, each with its link in the copy."""
        links = {}
        for name in self.data:
            path = PurePath(self.folder, name)
            links[str(path)] = "" if PurePath(name).is_absolute() else name
        return links

    @property
    def facts(self) -> dict[str, Any]:
        """The facts about it in the record of a run."""
        names = ("name", "command", "launch", "timing", "digest", "commit", "dirty", "remote")
        return {name: getattr(self, name) for name in names}

    def argv(self, values: Mapping[str, Scalar]) -> tuple[str, ...]:
        """Return its command with these placeholders replaced."""
        return tuple(self.filled(argument, values) for argument in shlex.split(self.command))

    def amount(self, name: str, values: Mapping[str, Scalar]) -> float | None:
        """Return ``samples_per_step``, ``tokens_per_step`` or ``flops_per_sample``; None where the study gives none.

        Raises ValueError, with its name, where it is no number above 0.
        """
        expression: str = getattr(self, name)
        if not expression:
            return None
        try:
            amount = evaluated(expression, values)
        except ValueError as error:
            raise ValueError(f"program.{name} is {expression!r}; {error}") from None
        if not 0 < amount < math.inf:
            raise ValueError(f"program.{name} is {expression!r}, which is {amount:g}; it must be more than 0")
        return amount

    def filled(self, text: str, values: Mapping[str, Scalar]) -> str:
        """Return a text with the placeholders of these values replaced."""

        def written(match: re.Match[str]) -> str:
            name = match[1]
            if name is None:
                return _BRACES[match[0]]
            if name not in values:
                return match[0]
            value = values[name]
            if isinstance(value, bool):
                return self.booleans[value]
            return str(value)

        return _PLACEHOLDER.sub(written, text)

    def as_json(self) -> str:
        """Return what identifies it, and is kept next to its files."""
        return json.dumps(asdict(self), indent=1, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Program":
        """Return what ``as_json`` wrote."""
        return restored(cls, json.loads(text))

    def digest_with(self, files_digest: str) -> str:
        """Return the digest of declaration and files, without the folder."""
        declared = asdict(self)
        for name in ("folder", "study_folder", "digest", "commit", "dirty", "remote"):
            del declared[name]
        content = json.dumps({**declared, "files": files_digest}, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


def _is_filled_in_at_start(name: str) -> bool:
    return name != "run" and bool(_AT_THE_START.fullmatch(name))


def find_placeholders(text: str) -> Iterator[str]:
    """Yield the names in braces in a text."""
    return (match[1] for match in _PLACEHOLDER.finditer(text) if match[1] is not None)


def program_values(values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the values of a program's placeholders for a configuration."""
    processes = int(values["nodes"]) * int(values["devices_per_node"])
    derived: dict[str, Scalar] = {"processes": processes, "world_size": processes}
    if values.get("batch_per_device"):
        derived["global_batch"] = int(values["batch_per_device"]) * parallel_layout(values).replicas
    if int(values.get("compute_only_steps", 0)) < 0:
        derived["compute_only_steps"] = values["measured_steps"]
    return {**values, **derived}


def evaluated(expression: str, values: Mapping[str, Scalar]) -> float:
    """Return the value of arithmetic over placeholders, as ``{global_batch} * {block_size}``.

    Raises ValueError, with what is wrong, for a name without a number, and for anything but + - * / // and numbers.
    """
    arithmetic = _PLACEHOLDER.sub(lambda match: match[1] or match[0], expression)
    try:
        tree = ast.parse(arithmetic, mode="eval")
    except SyntaxError:
        raise ValueError("it is not arithmetic of numbers and placeholders") from None
    try:
        return float(_value(tree.body, values))
    except (ZeroDivisionError, OverflowError) as error:
        raise ValueError(str(error)) from None


def _value(node: ast.expr, values: Mapping[str, Scalar]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            value = values.get(name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                if name in values:
                    raise ValueError(f"{name} is {value!r}, which is no number")
                reason = ": batch_per_device is not given" if name == "global_batch" else ""
                raise ValueError(f"{name} is unknown{reason}")
            return value
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _OPERATORS:
            result: float = _OPERATORS[type(operation)](_value(left, values), _value(right, values))
            return result
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, values)
        case _:
            raise ValueError("it may have numbers, placeholders, parentheses and + - * / // only")
