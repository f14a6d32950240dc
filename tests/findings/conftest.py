"""The constructed studies of the report."""

from tests.report.conftest import mixed, paths  # noqa: F401  (fixtures)
