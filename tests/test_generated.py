"""The files that are made from declarations are up to date, and the studies and clusters fit their schema."""

import argparse
import ast
import json
import re

import pytest
import yaml
from jsonschema import Draft202012Validator

from dlperf_study.cli.command_reference import command_reference
from dlperf_study.core.resources import PARAMS
from dlperf_study.generated import GENERATED, columns_page, log_formats_page, parameter_table, run_notebook
from dlperf_study.logs.formats import all_formats
from dlperf_study.metrics.columns import COLUMNS
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


def test_the_documentation_gives_values_default_meaning_and_note():
    ratio = Parameter("Ratio", "a share", unit="%", bounds=(0, 50), above_bound=True, note="rare", type=int, default=5)
    choice = Parameter("Choice", "a choice", allowed_values=("none", "all"), default="all")
    name = Parameter("Name", "what it is called")
    assert parameter_table({"ratio": ratio, "choice": choice, "name": name}).splitlines()[2:] == [
        "| `ratio` | **`5`**; more than 0–50 % | a share; rare |",
        "| `choice` | `none`, **`all`** | a choice |",
        "| `name` | required | what it is called |",
    ]


def test_the_page_on_columns_has_every_column_once_and_a_rule_for_bounds_of_intervals():
    tables = columns_page().partition("## Runs and configurations")[2]
    rows = re.findall(r"^\| `(\w+)`[^|]*\|", tables, re.MULTILINE)
    with_interval = [name for name, metric in COLUMNS.items() if len(metric.columns) > 1]
    bounds = {f"{name}_{end}" for name in with_interval for end in ("low", "high")}
    assert sorted(rows) == sorted(COLUMNS.keys() - bounds)
    assert "| `speedup` (×) ± |" in tables


def test_the_page_on_formats_has_every_format():
    rows = re.findall(r"^\| `(\w+)` \|", log_formats_page(), re.MULTILINE)
    assert {format_.name for format_ in all_formats()} <= set(rows)


def example_parser():
    """Return a parser of three commands that share an option."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers()
    for name in ("run", "plan", "audit"):
        command = commands.add_parser(name, description=f"The {name}.", epilog="dlperf-study run mine")
        command.add_argument("--json", action="store_true", help="print JSON")
    command.add_argument("file", nargs="?", metavar="FILE", help="a table, a|b")
    command.add_argument("--decimal", choices=(".", ","), help="100 %% %(choices)s")
    return parser


def test_the_reference_of_commands_has_usage_examples_and_options():
    text = command_reference(example_parser())
    assert text.startswith(
        "## Options of several commands\n\n| option | meaning |\n|---|---|\n| `--json` | print JSON |"
    )
    assert "## run\n\nThe run.\n\n```text\ndlperf-study run [options]\n\ndlperf-study run mine\n```" in text
    assert "```text\ndlperf-study audit [options] [FILE]\n" in text
    assert "| `[FILE]` | a table, a\\|b |\n| `--decimal {.,,}` | 100 % ., , |" in text


def test_an_option_of_some_commands_is_named_in_each_and_described_once():
    parser = example_parser()
    [commands] = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    commands.add_parser("completion", description="The script.")
    text = command_reference(parser)
    assert text.count("print JSON") == 1
    assert text.count("Also: `--json`.") == len(("run", "plan", "audit"))
