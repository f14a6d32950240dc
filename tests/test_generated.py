"""The files that are made from declarations are up to date, and the studies and clusters fit their schema."""

import ast
import json

import pytest
import yaml
from jsonschema import Draft202012Validator

from dlperf_study.core.resources import PARAMS
from dlperf_study.generated import GENERATED, parameter_table, run_notebook
from dlperf_study.study.configuration import PARAMETERS, Configuration
from dlperf_study.study.parameter import Parameter


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.name)
def test_a_generated_file_is_up_to_date(path):
    written = path.read_text(encoding="utf-8")
    assert written == GENERATED[path](), "write it again: python -m dlperf_study.generated"


def files_with_schema():
    """Return all files but those of programs, whose placeholders no schema knows."""
    return [file for file in sorted(PARAMS.glob("*/*.yaml")) if "program" not in yaml.safe_load(file.read_text())]


@pytest.mark.parametrize("file", files_with_schema(), ids=lambda file: file.stem)
def test_every_file_names_its_schema_and_fits_it(file):
    first, text = file.read_text(encoding="utf-8").split("\n", 1)
    prefix = "# yaml-language-server: $schema="
    assert first.startswith(prefix)
    schema = json.loads((file.parent / first.removeprefix(prefix)).read_text(encoding="utf-8"))
    assert [error.message for error in Draft202012Validator(schema).iter_errors(yaml.safe_load(text))] == []


def test_the_notebook_assigns_every_parameter_once():
    (source,) = (
        "".join(cell["source"]) for cell in json.loads(run_notebook())["cells"] if cell["metadata"].get("tags")
    )
    statements = ast.parse(source).body
    values = {ast.unparse(item.targets[0]): ast.literal_eval(item.value) for item in statements}
    assert sorted(values) == sorted(PARAMETERS)
    assert len(statements) == len(PARAMETERS)
    assert Configuration.from_mapping(values).as_dict() == values


def test_the_documentation_gives_default_values_meaning_and_note():
    ratio = Parameter("Ratio", "a share", unit="%", bounds=(0, 50), above_bound=True, note="rare", type=int, default=5)
    name = Parameter("Name", "what it is called")
    assert parameter_table({"ratio": ratio, "name": name}).splitlines()[2:] == [
        "| `ratio` | `5` | more than 0 to 50 % | a share; rare |",
        "| `name` | must be given | see meaning | what it is called |",
    ]
