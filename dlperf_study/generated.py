"""Every file that is made from declarations: ``python -m dlperf_study.generated`` writes them all.

They are the JSON Schemas of study and cluster files, for editors; the tables of columns in ``docs/columns.md``, of
parameters in ``docs/study-files.md``, of log formats in ``docs/log-formats.md``, and of old names in
``docs/renamed.md``; the ``parameters`` cell of ``notebooks/run_configuration.ipynb``; and ``environment.yml``, from
``pyproject.toml``.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from dlperf_study.core.paths import PROJECT
from dlperf_study.core.resources import CHECKOUT, NOTEBOOKS, PARAMS
from dlperf_study.core.wording import value_text
from dlperf_study.logs.format import Format
from dlperf_study.logs.formats import all_formats
from dlperf_study.machines import launchers
from dlperf_study.machines.cluster.cluster_file import launcher_sections
from dlperf_study.machines.cluster.sections import cluster_file_model
from dlperf_study.metrics.columns import TableName, list_columns
from dlperf_study.study import renamed
from dlperf_study.study.configuration import PARAMETERS, parameters_in_scope, study_parameters
from dlperf_study.study.parameter import Parameter, Scalar, Scope
from dlperf_study.study.study import StudyFile
from dlperf_study.training import data_loaders, frameworks, models

COLUMNS_PAGE = PROJECT / "docs" / "columns.md"
RENAMED_PAGE = PROJECT / "docs" / "renamed.md"
LOG_FORMATS_PAGE = PROJECT / "docs" / "log-formats.md"
STUDY_FILES_PAGE = PROJECT / "docs" / "study-files.md"
ENVIRONMENT_FILE = PROJECT / "environment.yml"
RUN_NOTEBOOK = NOTEBOOKS / "run_configuration.ipynb"
#: The values in the notebook that are not defaults: a small configuration that runs anywhere.
EXAMPLE: dict[str, Scalar] = {
    "study": "by_hand",
    "cluster": "local",
    "framework": "paddle_collective",
    "strategy": "all_reduce",
    "model": "mobilenet_v2",
    "image_size": 32,
    "classes": 10,
    "devices_per_node": 2,
    "batch_per_device": 8,
    "warmup_steps": 2,
    "max_warmup_seconds": 0.0,
    "measured_steps": 5,
    "compute_only_steps": 3,
    "communication_only_steps": 3,
    "repetitions": 1,
}


#: Stands for the valid values of a parameter that its meaning explains.
_SEE_MEANING = "see meaning"
#: Longer lists of valid values are left out of the notebook's comments.
_LONGEST_COMMENT = 80


class _EditorSchema(GenerateJsonSchema):
    """Leave out the titles pydantic makes from names; editors show the key itself."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema_text(model: type[BaseModel]) -> str:
    """Return the JSON Schema of a file's content."""
    schema = model.model_json_schema(schema_generator=_EditorSchema)
    return json.dumps({"$schema": _EditorSchema.schema_dialect, **schema}, indent=2) + "\n"


def columns_page() -> str:
    """Return ``docs/columns.md`` with its tables of columns generated again; the rest is unchanged."""
    page = COLUMNS_PAGE.read_text(encoding="utf-8")
    for table in TableName:
        page = between_markers(page, table, column_table(table))
    return page


def column_table(table: TableName) -> str:
    """Return a table in Markdown: each column, and first the names of those that `runs` has with the same meaning."""
    lines = _column_lines(table)
    of_runs = {} if table == TableName.RUNS else _column_lines(TableName.RUNS)
    same = [name for name, line in lines.items() if of_runs.get(name) == line]
    shared = f"The same as in `runs`: {', '.join(f'`{name}`' for name in same)}.\n\n" if same else ""
    header = "| column | unit | type | definition |\n|---|---|---|---|\n"
    return shared + header + "\n".join(line for name, line in lines.items() if name not in same)


def _column_lines(table: TableName) -> dict[str, str]:
    return {
        column.name: f"| `{column.name}` | {column.unit} | {column.dtype_in(table)} | {column.definition} |"
        for column in list_columns(table)
    }


def study_files_page() -> str:
    """Return ``docs/study-files.md`` with its tables of parameters generated again; the rest is unchanged."""
    page = STUDY_FILES_PAGE.read_text(encoding="utf-8")
    page = between_markers(page, "parameters", parameter_table(study_parameters()))
    return between_markers(page, "measurement", parameter_table(parameters_in_scope(Scope.MEASUREMENT)))


def log_formats_page() -> str:
    """Return ``docs/log-formats.md`` with its list of log formats generated again; the rest is unchanged."""
    return between_markers(LOG_FORMATS_PAGE.read_text(encoding="utf-8"), "formats", format_table(all_formats()))


def format_table(formats: Sequence[Format]) -> str:
    """Return a table in Markdown: the name of each format, its program, the number that is read, and its traps."""
    lines = ["| `format` | program | read, the best first | note |", "|---|---|---|---|"]
    for format_ in formats:
        names = [format_.metrics[name].printed for name in format_.throughput_metrics if name in format_.metrics]
        read = "; ".join(dict.fromkeys(names)) or "nothing"
        notes = "; ".join(format_.traps).replace("|", "\\|")
        lines.append(f"| `{format_.name}` | {format_.title}: {format_.program} | {read} | {notes} |")
    return "\n".join(lines)


def renamed_page() -> str:
    """Return ``docs/renamed.md`` with its table of old and new names generated again."""
    lines = ["| old | new | where |", "|---|---|---|"]
    for where, names in (
        ("parameter: study file, column", renamed.PARAMETERS),
        ("study file", renamed.STUDY_KEYS),
        ("value of `order` in a study file", renamed.ORDERS),
        ("cluster file", renamed.CLUSTER_KEYS),
        ("column", renamed.COLUMNS),
    ):
        lines += [f"| `{old}` | `{new}` | {where} |" for old, new in names.items()]
    return between_markers(RENAMED_PAGE.read_text(encoding="utf-8"), "renamed", "\n".join(lines))


def parameter_table(parameters: Mapping[str, Parameter]) -> str:
    """Return a table in Markdown: default, valid values and meaning of each parameter."""
    lines = ["| parameter | default | values | meaning |", "|---|---|---|---|"]
    for name, parameter in parameters.items():
        default = "must be given" if parameter.default is None else f"`{value_text(parameter.default)}`"
        meaning = f"{parameter.meaning}; {parameter.note}" if parameter.note else parameter.meaning
        lines.append(f"| `{name}` | {default} | {_valid_values(parameter)} | {meaning} |")
    return "\n".join(lines)


def run_notebook() -> str:
    """Return the notebook of one configuration with its ``parameters`` cell generated again."""
    notebook = json.loads(RUN_NOTEBOOK.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if "parameters" in cell["metadata"].get("tags", ()):
            cell["source"] = run_parameters().splitlines(keepends=True)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def run_parameters() -> str:
    """Return the assignments of the ``parameters`` cell: what a reader changes first, then the rest."""
    measurement = parameters_in_scope(Scope.MEASUREMENT)
    chosen = [name for name in PARAMETERS if name in EXAMPLE and name not in measurement]
    rest = [name for name in PARAMETERS if name not in chosen and name not in measurement]
    groups = {
        "What is trained, on what, and on how many devices": chosen,
        "How it is measured": list(measurement),
        "The rest, each with its default; docs/study-files.md says what each means": rest,
    }
    return "\n\n".join("\n".join((f"# {title}", *map(_assignment, names))) for title, names in groups.items())


def _assignment(name: str) -> str:
    """Return the line that sets a parameter, with its valid values as a comment where they are short."""
    parameter = PARAMETERS[name]
    value = EXAMPLE.get(name, parameter.default)
    literal = json.dumps(value) if isinstance(value, str) else repr(value)
    valid = "" if parameter.type is bool else _valid_values(parameter).replace("`", "")
    if parameter.default_name:
        valid = f"{parameter.default}: {parameter.default_name}; else {valid}"
    comment = f"  # {valid}" if valid != _SEE_MEANING and 0 < len(valid) <= _LONGEST_COMMENT else ""
    return f"{name} = {literal}{comment}"


def environment_file() -> str:
    """Return ``environment.yml`` with all but its first comment generated again."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest_python = re.findall(r">=([\d.]+)", project["requires-python"])[0]
    lines = ENVIRONMENT_FILE.read_text(encoding="utf-8").splitlines()
    comment = [line for line in lines if line.startswith("#")]
    content = [
        f"name: {project['name']}",
        "channels:",
        "  - conda-forge",
        "dependencies:",
        f"  - python={oldest_python}",
        "  - pip",
        "  - make",
        "  - pip:",
        "      - -c locks/main.txt",
        "      - -e .[dev]",
    ]
    return "\n".join([*comment, *content]) + "\n"


#: What each generated file must hold.
GENERATED: dict[Path, Callable[[], str]] = {
    PARAMS / "schema" / "study.schema.json": lambda: schema_text(StudyFile),
    PARAMS / "schema" / "cluster.schema.json": lambda: schema_text(
        cluster_file_model(launcher_sections(launchers.by_name()))
    ),
    COLUMNS_PAGE: columns_page,
    STUDY_FILES_PAGE: study_files_page,
    LOG_FORMATS_PAGE: log_formats_page,
    RENAMED_PAGE: renamed_page,
    RUN_NOTEBOOK: run_notebook,
    ENVIRONMENT_FILE: environment_file,
}


def write_generated() -> None:
    """Write every generated file; only a checkout has them."""
    if not CHECKOUT:
        raise SystemExit("only a checkout has generated files; this package is installed")
    for path, content in GENERATED.items():
        path.write_text(content(), encoding="utf-8")


def between_markers(page: str, name: str, content: str) -> str:
    """Return a page with new content between the comments ``<!-- name -->`` and ``<!-- end of name -->``."""
    pattern = rf"(<!-- {name}: [^>]*-->\n\n).*?(\n\n<!-- end of {name} -->)"
    return re.sub(pattern, lambda match: match[1] + content + match[2], page, flags=re.DOTALL)


def _valid_values(parameter: Parameter) -> str:
    """Return the values that a parameter may have, in Markdown: all of them or the bounds, and the unit."""
    parts = {"framework": frameworks.names, "model": models.names, "data_loader": data_loaders.names}
    values = parts[parameter.name]() if parameter.name in parts else parameter.allowed_values
    if values:
        return ", ".join(f"`{value}`" for value in values)
    if parameter.type is bool:
        return "`true`, `false`"
    if parameter.bounds is None:
        return _SEE_MEANING
    smallest, largest = parameter.bounds
    more_than = "more than " if parameter.above_bound else ""
    return f"{more_than}{smallest:,} to {largest:,} {parameter.unit}".strip()


if __name__ == "__main__":
    write_generated()
