"""One file a check: its name is the check's. The folder is the registry, and every check in it is run."""

from importlib import import_module

from dlperf_study import registry
from dlperf_study.analysis.audit.finding import Check


def names() -> tuple[str, ...]:
    """Return the names of all checks, in alphabetical order."""
    return registry.names(__name__)


def load(name: str) -> Check:
    """Return the check of that name."""
    check: Check = import_module(f"{__name__}.{name}").CHECK
    return check
