"""Every file that is made from declarations: ``python -m dlperf_study.generated`` writes them all.

They are the JSON Schemas of study and cluster files, for editors; the tables of columns in ``docs/columns.md``, of
parameters in ``docs/study-files.md``, of log formats in ``docs/log-formats.md``, and of commands in
``docs/command-line.md``; the ``parameters`` cell of ``notebooks/02_run_configuration.ipynb``; and ``environment.yml``,
from ``pyproject.toml``.
"""

import json
import re
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from dlperf_study.cli.command_reference import command_reference
from dlperf_study.cli.parser import command_parser
from dlperf_study.core.paths import PROJECT
from dlperf_study.core.resources import CHECKOUT, PARAMS, notebook
from dlperf_study.core.wording import value_text
from dlperf_study.logs.format import Format
from dlperf_study.logs.formats import all_formats
from dlperf_study.logs.printed import MetricScope, PrintedMetric
from dlperf_study.machines import launchers
from dlperf_study.machines.cluster.cluster_file import launcher_sections
from dlperf_study.machines.cluster.sections import cluster_file_model
from dlperf_study.metrics.columns import Metric, TableName, list_columns, list_family
from dlperf_study.study.configuration import PARAMETERS, parameters_in_scope, study_parameters
from dlperf_study.study.parameter import Parameter, Scalar, Scope
from dlperf_study.study.study import StudyFile
from dlperf_study.training import data_loaders, frameworks, models

COMMANDS_PAGE = PROJECT / "docs" / "command-line.md"
COLUMNS_PAGE = PROJECT / "docs" / "columns.md"
LOG_FORMATS_PAGE = PROJECT / "docs" / "log-formats.md"
STUDY_FILES_PAGE = PROJECT / "docs" / "study-files.md"
ENVIRONMENT_FILE = PROJECT / "environment.yml"
#: The families of metrics by the headings of the page on columns.
SUBJECTS: dict[str, tuple[str, ...]] = {
    "Configuration and run": ("parameters", "run_status"),
    "Throughput and comparison": ("throughput", "scaling", "comparison"),
    "Steps": ("step_times", "steady_state"),
    "Step breakdown and communication": ("computation", "communication", "collectives", "pipeline_bubble"),
    "NCCL": ("communication_reports",),
    "Model and computation": ("utilisation", "tuning"),
    "Memory, energy and devices": ("process_resources", "energy", "gpu_state", "network"),
    "Ingested logs": ("ingested",),
    "Software and hardware": ("environment",),
}
RUN_NOTEBOOK = notebook("run_configuration")
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
#: The width of lines of text in Markdown.
MAX_WIDTH = 120
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


def commands_page() -> str:
    """Return ``docs/command-line.md`` with its sections of commands generated again; the rest is unchanged."""
    page = COMMANDS_PAGE.read_text(encoding="utf-8")
    return between_markers(page, "commands", command_reference(command_parser()))


def columns_page() -> str:
    """Return ``docs/columns.md`` with its tables of columns generated again; the rest is unchanged."""
    page = between_markers(COLUMNS_PAGE.read_text(encoding="utf-8"), "columns", family_tables())
    for table in (TableName.STEPS, TableName.DIAGNOSTICS, TableName.PUBLISHED):
        page = between_markers(page, table, column_table(table))
    return page


def family_tables() -> str:
    """Return the columns of runs and configurations in Markdown: a table per subject."""
    return "\n\n".join(
        f"### {title}\n\n{_subject_table(chain.from_iterable(map(list_family, families)))}"
        for title, families in SUBJECTS.items()
    )


def _subject_table(metrics: Iterable[Metric]) -> str:
    """Return the rows of the columns that both tables have, then of those that one of them has."""
    both = {TableName.RUNS, TableName.CONFIGURATIONS}
    of_runs: list[str] = []
    of_configurations: list[str] = []
    lines = ["| column | meaning |", "|---|---|"]
    for metric in metrics:
        tables = both & set(metric.tables)
        if tables == both:
            lines.append(_column_line(metric))
        elif tables:
            (of_runs if TableName.RUNS in tables else of_configurations).append(_column_line(metric))
    for table, rows in ((TableName.RUNS, of_runs), (TableName.CONFIGURATIONS, of_configurations)):
        if rows:
            lines += [f"| **only in `{table}`** | |", *rows]
    return "\n".join(lines)


def column_table(table: TableName) -> str:
    """Return a table in Markdown: each column, and first the names of those that `runs` has with the same meaning."""
    columns, of_runs = list_columns(table), set(list_columns(TableName.RUNS))
    same = [f"`{column.name}`" for column in columns if column in of_runs]
    lines = [
        "| column | meaning |",
        "|---|---|",
        *(_column_line(column) for column in columns if column not in of_runs),
    ]
    shared = textwrap.fill(f"Also, as in `runs`: {', '.join(same)}.", MAX_WIDTH, break_on_hyphens=False)
    return f"{shared}\n\n" + "\n".join(lines)


def _column_line(metric: Metric) -> str:
    """Return the row of a column, with its unit, and ± if it has the columns of a CI."""
    unit = f" ({metric.unit})" if metric.unit else ""
    interval = " ±" if len(metric.columns) > 1 else ""
    return f"| `{metric.name}`{unit}{interval} | {metric.definition} |"


def study_files_page() -> str:
    """Return ``docs/study-files.md`` with its tables of parameters generated again; the rest is unchanged."""
    page = STUDY_FILES_PAGE.read_text(encoding="utf-8")
    selftest = parameters_in_scope(Scope.SELFTEST)
    usable = {name: parameter for name, parameter in study_parameters().items() if name not in selftest}
    page = between_markers(page, "parameters", parameter_table(usable))
    return between_markers(page, "measurement", parameter_table(parameters_in_scope(Scope.MEASUREMENT)))


def log_formats_page() -> str:
    """Return ``docs/log-formats.md`` with its list of log formats generated again; the rest is unchanged."""
    return between_markers(LOG_FORMATS_PAGE.read_text(encoding="utf-8"), "formats", format_table(all_formats()))


def format_table(formats: Sequence[Format]) -> str:
    """Return a table in Markdown: the name of each format, its program, the numbers that are read, and its traps."""
    lines = ["| `format` | program | read, best first | note |", "|---|---|---|---|"]
    for format_ in formats:
        metrics = [format_.metrics[name] for name in format_.throughput_metrics if name in format_.metrics]
        read = ", ".join(dict.fromkeys(map(_printed_number, metrics))) or "nothing"
        notes = "; ".join(format_.traps).replace("|", "\\|")
        lines.append(f"| `{format_.name}` | {format_.program.partition(',')[0]} | {read} | {notes} |")
    return "\n".join(lines)


def _printed_number(metric: PrintedMetric) -> str:
    """Return the unit of a number that programs print, with its scope unless that is the job."""
    unit = "steps/s" if metric.inverse else metric.unit or "unitless"
    if metric.scope is not MetricScope.JOB:
        unit += f"/{metric.scope}"
    if metric.cumulative:
        unit += f" (mean since {'epoch' if metric.restarts_each_epoch else 'start'})"
    return unit


def parameter_table(parameters: Mapping[str, Parameter]) -> str:
    """Return a table in Markdown: valid values, the default in bold, and meaning of each parameter."""
    lines = ["| parameter | values | meaning |", "|---|---|---|"]
    for name, parameter in parameters.items():
        meaning = f"{parameter.meaning}; {parameter.note}" if parameter.note else parameter.meaning
        lines.append(f"| `{name}` | {_values_with_default(parameter)} | {meaning} |")
    return "\n".join(lines)


def _values_with_default(parameter: Parameter) -> str:
    """Return the valid values of a parameter in Markdown, the default in bold; required: there is none."""
    values = _valid_values(parameter).replace(" to ", "–")
    default = "required" if parameter.default is None else f"**`{value_text(parameter.default)}`**"
    plain = default.replace("*", "")
    if plain in values.split(", "):
        return ", ".join(default if value == plain else value for value in values.split(", "))
    return default if values == _SEE_MEANING else f"{default}; {values}"


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
    COMMANDS_PAGE: commands_page,
    COLUMNS_PAGE: columns_page,
    STUDY_FILES_PAGE: study_files_page,
    LOG_FORMATS_PAGE: log_formats_page,
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
