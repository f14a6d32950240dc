"""The environment of training processes: what reaches them from a shell, and which values evidence may show."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlperf_study.core.large_files import replace_in_file, rewrite_lines
from dlperf_study.study import secrets


def _read_library_settings() -> frozenset[str]:
    """Return the variables by which libraries are set, as their documentation or their source names them.

    Evidence has these with their values, and of any other variable its name alone: ``NCCL_COOKIE`` may be anything.
    NCCL's are those of 2.30, Horovod's of 0.28.1, Paddle's of 3.0.0.
    """
    settings = set()
    prefix = ""
    for line in Path(__file__).with_name("library_settings.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            settings |= {prefix + name for name in line.split()}
        else:
            prefix = line
    return frozenset(settings)


KNOWN_SETTINGS = _read_library_settings()
#: Which GPUs CUDA shows a process: indices, or the beginnings of UUIDs.
VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"
#: In which order they have their indices; nvidia-smi and queues count by PCI bus, CUDA left alone by speed.
DEVICE_ORDER, PCI_BUS_ORDER = "CUDA_DEVICE_ORDER", "PCI_BUS_ID"
#: What a training process inherits on its node. Nothing else is passed, above all no secrets.
PASSED_VARIABLES = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ", "USER")
#: What it also gets, from the machine of the controller, but not what only a study file may decide.
#: These are for the libraries below every framework; a framework declares its own.
COMMON_PREFIXES = ("CUDA_", "GLOO_", "KMP_", "MKL_", "NCCL_", "OMP_")
COMMON_DECIDED_VARIABLES = (DEVICE_ORDER, VISIBLE_DEVICES, "MKL_NUM_THREADS", "OMP_NUM_THREADS")
#: How long ranks may take to meet, and a collective to end, where the cluster file says nothing else: many ranks may
#: read a library of 2 GB from one file server.
MEET_SECONDS = COLLECTIVE_SECONDS = 300.0
#: The variables of training processes with the limits of the cluster file.
MEET_VARIABLE, COLLECTIVE_VARIABLE = "DLPERF_STUDY_MEET_SECONDS", "DLPERF_STUDY_COLLECTIVE_SECONDS"
#: A shorter line of a value of several may be in any log: ``lr: 0.1``.
MIN_LINE_OF_SECRET = 12


@dataclass(frozen=True)
class PassedVariables:
    """Which variables reach training processes.

    ``prefixes``: some library reads the variables whose names begin so. ``decided``: but only a study file may decide
    those that begin so.
    """

    prefixes: tuple[str, ...] = COMMON_PREFIXES
    decided: tuple[str, ...] = COMMON_DECIDED_VARIABLES

    def passed(self, environment: Mapping[str, str] = os.environ, further: Sequence[str] = ()) -> dict[str, str]:
        """Return the variables that training processes may see."""
        passed = {}
        for name, value in sorted(environment.items()):
            is_setting = name.startswith(self.prefixes) and not name.startswith(self.decided)
            if is_setting or name in (*PASSED_VARIABLES, *further):
                passed[name] = value
        return passed

    def travelling(self, environment: Mapping[str, str], further: Sequence[str]) -> dict[str, str]:
        """Return the passed variables that mean the same on every node."""
        passed = self.passed(environment, further)
        return {name: value for name, value in passed.items() if name in further or name not in PASSED_VARIABLES}

    def recorded(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return variables as evidence shows them, possible secrets withheld."""
        return {
            name: value if self._is_harmless(name, value) else secrets.WITHHELD for name, value in environment.items()
        }

    def redacted(self, text: str, environment: Mapping[str, str]) -> str:
        """Return a text without secrets."""
        for value in self._secrets(environment):
            text = text.replace(value, secrets.WITHHELD)
        return secrets.redacted(text)

    def redact_file(self, path: Path, environment: Mapping[str, str]) -> None:
        """Replace secrets in a file."""
        replace_in_file(path, self._secrets(environment), secrets.WITHHELD)
        rewrite_lines(path, secrets.redacted)

    def _secrets(self, environment: Mapping[str, str]) -> list[str]:
        """Return the values that may be secrets, the longest first."""
        values: set[str] = set()
        for name, value in environment.items():
            if not self._is_harmless(name, value):
                # As it is, as Python and JSON print it, and each of its long lines.
                values |= {value, repr(value)[1:-1], json.dumps(value)[1:-1]}
                lines = map(str.strip, value.splitlines())
                values.update(line for line in lines if len(line) >= MIN_LINE_OF_SECRET)
        long = {value for value in values if len(value) >= secrets.SHORTEST_SECRET}
        return sorted((value for value in long if not secrets.SWITCH.fullmatch(value)), key=len, reverse=True)

    def _is_harmless(self, name: str, value: str) -> bool:
        """Return whether a variable is known and holds no secret."""
        return name in PASSED_VARIABLES or (name in KNOWN_SETTINGS and not secrets.has_secret(value))


#: What the libraries below every framework read.
COMMON_VARIABLES = PassedVariables()


def start_up_environment(meet_seconds: float, collective_seconds: float) -> dict[str, str]:
    """Return the variables with the time limits of libraries."""
    return {MEET_VARIABLE: f"{meet_seconds:g}", COLLECTIVE_VARIABLE: f"{collective_seconds:g}"}
