"""The environment of training processes: what reaches them from a shell, and which values evidence may show."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlperf_study.core.large_files import replace_in_file


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
#: What evidence has instead of a value that may be a secret.
WITHHELD = "(not recorded)"
#: A shorter value can't be a secret, and is part of many words.
SHORTEST_SECRET = 4
#: A user and a password, in a URL or alone.
_SECRET_VALUE = re.compile(r"://[^/\s@]+@|[^/\s:@]+:[^/\s:@]+@")
#: How the keys of services begin and go on: OpenAI, Hugging Face, GitHub, GitLab, AWS, Google, Slack, JSON web tokens.
_SERVICE_KEYS = {
    "sk-": r"[\w-]{32,}",
    "hf_": "[A-Za-z0-9]{16,}",
    "ghp_": "[A-Za-z0-9]{20,}",
    "github_pat_": r"\w{20,}",
    "glpat-": r"[\w-]{16,}",
    "AKIA": r"[A-Z0-9]{16}(?!\w)",
    "AIza": r"[\w-]{30,}",
    "xoxb-": r"[\w-]{10,}",
    "eyJ": r"[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,}",
}
_SERVICE_KEY = re.compile("|".join(rf"(?<!\w){begin}{rest}" for begin, rest in _SERVICE_KEYS.items()), re.ASCII)
#: Switches and small numbers are no secrets, and replaced in a log they would take the sense out of it.
_SWITCH = re.compile(r"true|false|none|auto|default|[-+]?\d{1,6}(?:\.\d+)?", re.IGNORECASE)


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
        return {name: value if self._is_harmless(name, value) else WITHHELD for name, value in environment.items()}

    def redacted(self, text: str, environment: Mapping[str, str]) -> str:
        """Return a text without secrets."""
        for value in self._secrets(environment):
            text = text.replace(value, WITHHELD)
        return _SERVICE_KEY.sub(WITHHELD, text)

    def redact_file(self, path: Path, environment: Mapping[str, str]) -> None:
        """Replace secrets in a file."""
        replace_in_file(path, self._secrets(environment), WITHHELD, beginnings=_SERVICE_KEYS)

    def _secrets(self, environment: Mapping[str, str]) -> list[str]:
        """Return the values that may be secrets, the longest first."""
        values = {value for name, value in environment.items() if not self._is_harmless(name, value)}
        secrets = (value for value in values if len(value) >= SHORTEST_SECRET and not _SWITCH.fullmatch(value))
        return sorted(secrets, key=len, reverse=True)

    def _is_harmless(self, name: str, value: str) -> bool:
        """Return whether a variable is known and holds no secret."""
        has_secret = _SECRET_VALUE.search(value) or _SERVICE_KEY.search(value)
        return name in PASSED_VARIABLES or (name in KNOWN_SETTINGS and not has_secret)


#: Parts of the names of options and variables whose values are secrets, as in ``--api-key``; ``--tokenizer`` has none.
_SECRET_WORDS = {
    *("token", "secret", "password", "passwd", "pwd", "passphrase", "credential", "credentials", "apikey"),
    *("auth", "bearer", "cookie", "cookies"),
}
#: The folder in which a shell is, and none.
_NO_SECRETS = {"PWD", "OLDPWD"}
_KEYS = {"api", "access", "secret", "private", "auth", "license"}


def names_secret(name: str) -> bool:
    """Return whether a name is one of a secret: ``HF_TOKEN``, ``--api-key``."""
    parts = re.findall("[a-z]+", name.lower())
    # Of variables, each that ends so: the key of whatever service it is.
    is_key = "key" in parts[-1:] and (bool(_KEYS & set(parts[:-1])) or name.isupper())
    return name not in _NO_SECRETS and (is_key or bool(_SECRET_WORDS & set(parts[-1:])))


def secrets_in(arguments: Sequence[str]) -> list[str]:
    """Return the parts of a command line that are secret."""
    secrets = []
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        name, _, value = argument.partition("=")
        given = value or ("" if following.startswith("-") else following)
        if names_secret(name) and len(given) >= SHORTEST_SECRET and not (given.isdigit() or _SWITCH.fullmatch(given)):
            secrets.append(name)
        elif _SECRET_VALUE.search(argument):
            secrets.append("a URL with a password")
        elif _SERVICE_KEY.search(argument):
            secrets.append("the key of a service")
    return secrets


#: What the libraries below every framework read.
COMMON_VARIABLES = PassedVariables()


def start_up_environment(meet_seconds: float, collective_seconds: float) -> dict[str, str]:
    """Return the variables with the time limits of libraries."""
    return {MEET_VARIABLE: f"{meet_seconds:g}", COLLECTIVE_VARIABLE: f"{collective_seconds:g}"}
