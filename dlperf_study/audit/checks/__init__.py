"""One file a check: its name is the check's. The folder is the registry, and every check in it is run."""

from dlperf_study.audit.audit_check import Check
from dlperf_study.errors import TableError
from dlperf_study.registry import Registry

_CHECKS = Registry[Check](__name__, "CHECK", "check", TableError)
names, load = _CHECKS.names, _CHECKS.load
