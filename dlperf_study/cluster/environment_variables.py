"""Which variables reach training processes, and which of their values evidence may show."""

import os
import re
from collections.abc import Mapping, Sequence
from functools import cache

from dlperf_study import frameworks
from dlperf_study.study.job import DEVICE_ORDER, VISIBLE_DEVICES

#: What a training process inherits on its node. Nothing else is passed, above all no secrets.
PASSED_VARIABLES = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ", "USER")
#: What it also gets, from the machine of the driver, but not what only a study file may decide.
#: These are for the libraries below every framework; a framework declares its own.
COMMON_PREFIXES = ("CUDA_", "GLOO_", "KMP_", "MKL_", "NCCL_", "OMP_")
COMMON_DECIDED_VARIABLES = (DEVICE_ORDER, VISIBLE_DEVICES, "MKL_NUM_THREADS", "OMP_NUM_THREADS")
#: What evidence has instead of a value that may be a secret.
WITHHELD = "(not recorded)"
#: A shorter value can't be a secret, and is part of many words.
SHORTEST_SECRET = 4
_SECRET_NAME = re.compile("AUTH|CRED|KEY|PASS|PWD|SECRET|TOKEN|URL", re.IGNORECASE)
#: A URL with a user and a password.
_SECRET_VALUE = re.compile(r"://[^/\s@]+@")


def passed_environment(environment: Mapping[str, str] = os.environ, further: Sequence[str] = ()) -> dict[str, str]:
    """Return the variables of ``environment`` that training processes may see; ``further`` are allowed by name."""
    passed = {}
    for name, value in sorted(environment.items()):
        is_setting = name.startswith(passed_prefixes()) and not name.startswith(decided_variables())
        if is_setting or name in (*PASSED_VARIABLES, *further):
            passed[name] = value
    return passed


def travelling_environment(environment: Mapping[str, str], further: Sequence[str]) -> dict[str, str]:
    """Return the passed variables that mean the same on every node: not the folders and the user of this one."""
    passed = passed_environment(environment, further)
    return {name: value for name, value in passed.items() if name in further or name not in PASSED_VARIABLES}


def recorded_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return variables as evidence may show them: with their values where these can't be secrets."""
    return {name: value if _is_harmless(name, value) else WITHHELD for name, value in environment.items()}


def without_secrets(text: str, environment: Mapping[str, str]) -> str:
    """Return a text without the values of these variables that evidence withholds."""
    for name, value in environment.items():
        if not _is_harmless(name, value) and len(value) >= SHORTEST_SECRET:
            text = text.replace(value, WITHHELD)
    return text


@cache
def passed_prefixes() -> tuple[str, ...]:
    """Return the prefixes of variables that some library reads."""
    prefixes = list(COMMON_PREFIXES)
    for framework in frameworks.all_frameworks():
        prefixes += framework.environment_prefixes
    return tuple(prefixes)


@cache
def decided_variables() -> tuple[str, ...]:
    """Return the prefixes of variables that only a study file may decide."""
    variables = list(COMMON_DECIDED_VARIABLES)
    for framework in frameworks.all_frameworks():
        variables += framework.decided_variables
    return tuple(variables)


def _is_harmless(name: str, value: str) -> bool:
    """Return whether a variable is known, and neither its name nor its value looks like a secret."""
    if name in PASSED_VARIABLES:
        return True
    return name.startswith(passed_prefixes()) and not (_SECRET_NAME.search(name) or _SECRET_VALUE.search(value))
