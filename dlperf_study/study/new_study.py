"""A study file for a user's program, written with comments, from what its user and a guess say of it."""

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import yaml

from dlperf_study.study.parameter import Scalar
from dlperf_study.study.program import PER_NODE, RECORDER

#: Steps before the measured window, and in it, and how often each configuration is measured.
MEASUREMENT: Mapping[str, int] = {"warmup_steps": 10, "measured_steps": 50, "repetitions": 3}
#: The longest line of a command, and the column in which comments begin, in characters.
COMMAND_WIDTH, COMMENT_COLUMN = 100, 40


@dataclass(frozen=True)
class NewStudy:
    """The content of a new study file; ``notes`` say what was guessed."""

    name: str
    command: str
    factors: Mapping[str, Sequence[Scalar]]
    folder: str = ".."
    launch: str = PER_NODE
    timing: str = RECORDER
    constants: Mapping[str, Scalar] = field(default_factory=dict)
    samples_per_step: str = ""
    tokens_per_step: str = ""
    data: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    measurement: Mapping[str, int] = field(default_factory=lambda: MEASUREMENT)
    notes: tuple[str, ...] = ()

    def as_yaml(self) -> str:
        """Return the text of the file."""
        lines = [f"# guessed: {note}" for note in self.notes]
        lines.append(f"title: Scaling of {self.name}")
        lines.append(f"about: Benchmark of the training script {self.name}.")
        lines.append("sections: [scaling, quality, resources]")
        lines.append(_commented("scaling: weak", "or strong: the global batch stays the same as devices are added"))
        lines += ["", *self._program(), ""]
        if self.constants:
            lines.append(f"constants: {_scalar(dict(self.constants))}")
        lines.append(_commented("factors:", "any placeholder of the command; each combination of values is measured"))
        lines += [f"  {name}: {_scalar(list(values))}" for name, values in self.factors.items()]
        # The smallest number of devices, or else the first value of the first factor.
        scale = [name for name in ("nodes", "devices_per_node") if name in self.factors]
        baseline = {name: self.factors[name][0] for name in scale or list(self.factors)[:1]}
        lines.append(_commented(f"baseline: {_scalar(baseline)}", "what speedups are relative to"))
        lines.append(f"measurement: {_scalar(dict(self.measurement))}")
        return "\n".join(lines) + "\n"

    def _program(self) -> Iterator[str]:
        yield "program:"
        yield f"  name: {self.name}"
        yield _commented(
            f"  folder: {_scalar(self.folder)}", "its files, from the folder of this one; copied for each run"
        )
        command_lines = textwrap.wrap(self.command, COMMAND_WIDTH, break_long_words=False, break_on_hyphens=False)
        # YAML joins lines by spaces: a command that has a break or further spaces is in one line.
        if " ".join(command_lines) == self.command:
            yield "  command: >-"
            yield from (f"    {line}" for line in command_lines)
        else:
            yield f"  command: {json.dumps(self.command, ensure_ascii=False)}"
        yield _commented(f"  launch: {self.launch}", "per-node, first-node or per-rank: where the command is started")
        yield _commented(
            f"  timing: {_scalar(self.timing)}", "recorder, log, or a format of logs: where step times are from"
        )
        amounts = {"samples_per_step": self.samples_per_step, "tokens_per_step": self.tokens_per_step}
        yield from (f"  {name}: {_scalar(amount)}" for name, amount in amounts.items() if amount)
        if not any(amounts.values()):
            yield "  # samples_per_step, tokens_per_step: of all processes, as '{global_batch} * {block_size}'"
        if self.environment:
            yield f"  environment: {_scalar(dict(self.environment))}"
        hint = "  # data: [FOLDER, FILE]: what git ignores is not copied; what is named here is linked into each copy"
        yield f"  data: {_scalar(list(self.data))}" if self.data else hint


def _commented(line: str, comment: str) -> str:
    if len(line) < COMMENT_COLUMN:
        return f"{line:{COMMENT_COLUMN}}# {comment}"
    return f"{line}  # {comment}"


def _scalar(value: object) -> str:
    """Return a value as YAML in one line."""
    flow = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=float("inf"), allow_unicode=True)
    return flow.removesuffix("...\n").strip()
