"""How messages write numbers, names and unknown names."""

import difflib
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

#: What other programs call a key or a value of a study file that has another name here.
_NAMES_ELSEWHERE = {
    **dict.fromkeys(("batch", "batch_size", "bs", "micro_batch_size", "per_device_batch_size"), "batch_per_device"),
    **dict.fromkeys(("gpus", "n_gpus", "num_gpus", "devices", "workers", "processes"), "devices_per_node"),
    **dict.fromkeys(("steps", "iterations", "max_steps"), "measured_steps"),
    **dict.fromkeys(("warmup", "warmup_iterations"), "warmup_steps"),
    **dict.fromkeys(("runs", "repetitions", "trials"), "repetitions"),
    **dict.fromkeys(("dtype", "amp"), "precision"),
    **dict.fromkeys(("num_nodes", "n_nodes", "nnodes", "hosts"), "nodes"),
    **{"fp16": "amp_fp16", "bf16": "amp_bf16", "float32": "fp32", "float16": "amp_fp16", "bfloat16": "amp_bf16"},
}
#: Between reasons that hold by themselves, each of which may have a semicolon.
_BETWEEN_REASONS = "; and "
#: In the place of what a message that is too long leaves out.
_LEFT_OUT = " … "
#: Words of labels that look like any other, and are names.
_NAMES = ("Python",)
#: More valid names are a wall of text: a message has the one that was meant, or the first ones.
_MOST_CHOICES = 12


def unknown_name(where: str, name: str, kind: str, valid: Iterable[str]) -> str:
    """Return the message about a name that is not valid.

    ``study a: framework is 'padle_ps'; did you mean paddle_ps? the frameworks are horovod_torch, …``.
    """
    return f"{where} {name!r}; {suggestion(name, kind, valid)}"


def suggestion(name: str, kind: str, valid: Iterable[str]) -> str:
    """Return the closest name, the valid names, or both if few."""
    choices = list(valid)
    question = closest(name, choices)
    if len(choices) <= _MOST_CHOICES:
        return f"{question}the {kind} are {', '.join(choices)}"
    if question:
        return question.rstrip()
    return f"the {kind} are {list_first(choices, _MOST_CHOICES)}"


def closest(name: str, choices: Iterable[str]) -> str:
    """Return a question that suggests similar choices, or nothing."""
    names = list(choices)
    if _NAMES_ELSEWHERE.get(name) in names:
        return f"did you mean {_NAMES_ELSEWHERE[name]}? "
    # Fewer characters begin too many names.
    matches = [choice for choice in names if len(name) > 2 and choice.startswith(name)]
    matches = matches or difflib.get_close_matches(name, names, n=1)
    if not matches:
        return ""
    return f"did you mean {' or '.join(matches)}? "


def path_text(path: str | Path) -> str:
    """Return a path as printable text, non-UTF-8 bytes as codes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def as_yaml(value: object) -> str:
    """Return a value as YAML: ``true``, ``null``, ``'x'``, ``[1, 2]``."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list):
        return f"[{', '.join(map(as_yaml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {as_yaml(entry)}' for key, entry in value.items())}}}"
    return repr(value)


def value_text(value: object) -> str:
    """Return a value as a study file has it: ``0.5``."""
    if isinstance(value, str):
        return value
    return as_yaml(value)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 device``, ``2 devices``."""
    if number == 1:
        return f"{number} {noun}"
    return f"{number} {noun}s"


def per_cent(share: float, decimals: int = 0) -> str:
    """Return a share in per cent, with thin space: ``6.5 %``."""
    return f"{100 * share:.{decimals}f}\u202f%"


def duration(seconds: float) -> str:
    """Return a time as people say it: ``40 s``, ``12 min``, ``3 h 20 min``."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min"


def guessed(low: float, high: float) -> str:
    """Return an estimated range of a count: ``40 to 200``."""
    return " to ".join(dict.fromkeys(map(_one_digit, (low, high))))


def guessed_duration(low: float, high: float) -> str:
    """Return an estimated range of a time: ``3 min to 20 min``."""
    return " to ".join(dict.fromkeys(map(_guessed_time, (low, high))))


def _one_digit(number: float) -> str:
    return f"{float(f'{number:.0e}'):,.0f}".replace(",", "\u202f")


def _guessed_time(seconds: float) -> str:
    if seconds >= 3600:
        return f"{_one_digit(seconds / 3600)} h"
    if seconds >= 60:
        return f"{_one_digit(seconds / 60)} min"
    return f"{_one_digit(seconds)} s"


def list_first(names: Sequence[str], most: int = 10, mark: str = ", ") -> str:
    """Return the first names and how many remain: ``a, and 2 more``."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"and {len(names) - most} more")
    return mark.join(shown)


def all_reasons(reasons: Iterable[str | None]) -> str:
    """Return the reasons in one line, for ``single_reasons``."""
    return _BETWEEN_REASONS.join(filter(None, reasons))


def single_reasons(joined: str) -> list[str]:
    """Return the reasons of a line."""
    return joined.split(_BETWEEN_REASONS)


def last_line(output: str) -> str:
    """Return the last line of a program's output, or nothing."""
    return "".join(output.strip().splitlines()[-1:])


def shortened(message: str, most: int) -> str:
    """Return a message in at most ``most`` characters.

    Messages say at their end what to do.
    """
    if len(message) <= most:
        return message
    end = 2 * (most - len(_LEFT_OUT)) // 3
    beginning = most - len(_LEFT_OUT) - end
    return f"{message[:beginning]}{_LEFT_OUT}{message[-end:]}"


def throughput_text(throughput: float) -> str:
    """Return one run's throughput with two decimals or four digits: ``29.10``."""
    return f"{throughput:.{max(2, 3 - math.floor(math.log10(throughput)))}f}"


def rounded(value: float) -> str:
    """Return a number with four digits, without exponent: ``19000``."""
    return f"{float(f'{value:.4g}'):.15g}"


def in_sentence(label: str) -> str:
    """Return a label in lower case, except abbreviations and names."""
    return " ".join(word.lower() if word[1:].islower() and word not in _NAMES else word for word in label.split(" "))
