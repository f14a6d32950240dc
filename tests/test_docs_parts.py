"""The page on adding a part: every field is explained, and its examples are parts."""

from dataclasses import fields, make_dataclass

import pytest
import yaml
from pydantic import TypeAdapter

from dlperf_study.audit.checks import AuditDiagnostic, Check
from dlperf_study.audit.published.source import PublishedSource, read_lines
from dlperf_study.core.errors import Severity
from dlperf_study.machines.launchers._base import Launcher
from dlperf_study.programs import models
from dlperf_study.programs.frameworks._base import Framework, Trainer
from dlperf_study.programs.models._base import Model
from dlperf_study.readers import formats
from dlperf_study.readers.blocks import Block
from dlperf_study.readers.format import Format
from dlperf_study.readers.format_detection import read_block
from dlperf_study.study.configuration import PARAMETERS
from dlperf_study.study.parameter import Parameter, parameter, parameter_of
from dlperf_study.study.study_file import value_type
from tests.audit.tables import rate, results
from tests.docs import DOCS, blocks, words


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


def example(name: str) -> object:
    """Return the part of that name among the examples of the page."""
    spaces: list[dict[str, object]] = [{"parameter": parameter} for _ in blocks(DOCS / "adding-a-part.md", "python")]
    for space, text in zip(spaces, blocks(DOCS / "adding-a-part.md", "python"), strict=True):
        exec(compile(text, "adding-a-part.md", "exec"), space)
    (part,) = (space[name] for space in spaces if name in space)
    return part


def test_the_example_of_a_format_of_log_reads_a_line():
    made = example("FORMAT")
    assert isinstance(made, Format)
    (matches,) = read_block(made, Block(b"step=10 loss 6.9, speed: 4.0 samples/s\n", 1))
    assert {name: list(column) for name, column in matches.records.values.items()} == {
        "loss": [6.9],
        "throughput": [4.0],
    }
    assert list(matches.records.step) == [10]
    assert made.name not in formats.names()


def test_the_example_of_a_model_is_one():
    model = example("MODEL")
    assert isinstance(model, Model)
    assert model.forward_macs is not None
    assert model.parameters[model.classes] == model.forward_macs(model.image_size, model.classes) + model.classes
    assert model.name not in models.names()


def test_the_example_of_a_parameter_declares_one():
    fields_with_example = [("accumulation_steps", int, example("accumulation_steps"))]
    (declaration,) = fields(make_dataclass("Example", fields_with_example))
    declared = parameter_of(declaration)
    assert (declared.name, declared.type, declared.default) == ("accumulation_steps", int, 1)
    assert TypeAdapter(value_type(declared)).json_schema() == {
        "type": "integer",
        "minimum": 1,
        "maximum": 1_000,
        "description": "batches whose gradients are added before an exchange",
    }
    assert declared.name not in PARAMETERS


def test_the_example_of_a_check_examines_a_table():
    check = example("enough_digits")
    assert isinstance(check, Check)
    [diagnostic, right] = check.examine(results([rate("9"), rate("90", 2)]))
    assert right is None
    assert diagnostic is not None
    assert (diagnostic.computation.partition(" ")[0], diagnostic.severity) == ("9", Severity.NOTE)


def test_the_example_of_a_published_source_can_be_read(tmp_path):
    page = DOCS / "adding-a-part.md"
    [metadata], [lines] = blocks(page, "yaml"), blocks(page, "csv")
    (tmp_path / "source.csv").write_text(lines)
    source = PublishedSource.model_validate(yaml.safe_load(metadata))
    read = [(line["value"], line["world_size"]) for line in read_lines(source, tmp_path / "source.csv")]
    assert read == [(352.72, 1), (2630.1, 8), (7.46, 8)]
