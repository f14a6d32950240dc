"""The page on adding a part: every field is explained."""

from dataclasses import fields

import pytest

from dlperf_study.audit.checks import AuditDiagnostic, Check
from dlperf_study.machines.launchers._base import Launcher
from dlperf_study.programs.frameworks._base import Framework, Trainer
from dlperf_study.programs.models._base import Model
from dlperf_study.readers.format import Format
from dlperf_study.study.parameter import Parameter
from tests.docs import words


def members(kind: type) -> set[str]:
    """Return the attributes and methods a protocol or dataclass asks for."""
    return {name for name in [*vars(kind), *kind.__annotations__] if not name.startswith("_")}


@pytest.mark.parametrize("kind", [Model, Framework, Launcher, Format, Check, AuditDiagnostic])
def test_every_field_of_a_part_is_explained(kind):
    assert {field.name for field in fields(kind)} <= words("docs/adding-a-part.md")


def test_every_argument_of_a_declared_parameter_is_explained():
    of_the_field = {"name", "type", "default", "label", "meaning"}
    assert {field.name for field in fields(Parameter)} - of_the_field <= words("docs/adding-a-part.md")


def test_every_member_of_a_trainer_is_explained():
    assert members(Trainer) <= words("docs/adding-a-part.md")
