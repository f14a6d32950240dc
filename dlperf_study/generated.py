"""Every file that is made from declarations: ``python -m dlperf_study.generated`` writes them all.

They are the JSON Schemas of study and cluster files, for editors; ``docs/columns.md``; the tables of parameters in
``docs/study-files.md``; and the ``parameters`` cell of ``notebooks/run_configuration.ipynb``.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from dlperf_study import columns, frameworks, launchers, models
from dlperf_study.cluster.cluster_file import sections_of
from dlperf_study.cluster.sections import cluster_file_model
from dlperf_study.paths import NOTEBOOKS, PROJECT
from dlperf_study.study.configuration import PARAMETERS, parameters_of, study_parameters
from dlperf_study.study.parameter import Parameter, Scalar, Scope
from dlperf_study.study.strict_yaml import PARAMS
from dlperf_study.study.study_file import StudyFile

STUDY_FILES_PAGE = PROJECT / "docs" / "study-files.md"
RUN_NOTEBOOK = NOTEBOOKS / "run_configuration.ipynb"
#: What the notebook measures as it comes, where it is not the default: a small configuration that runs anywhere.
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
    "measured_steps": 5,
    "computation_steps": 3,
    "exchange_steps": 3,
    "repeats": 1,
}


class _EditorSchema(GenerateJsonSchema):
    """Leave out the titles pydantic makes from names; editors show the key itself."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema_text(model: type[BaseModel]) -> str:
    """Return the JSON Schema of a file's content."""
    schema = model.model_json_schema(schema_generator=_EditorSchema)
    return json.dumps({"$schema": _EditorSchema.schema_dialect, **schema}, indent=2) + "\n"


def study_files_page() -> str:
    """Return ``docs/study-files.md`` with its tables of parameters made anew; the rest stays as it is."""
    page = STUDY_FILES_PAGE.read_text(encoding="utf-8")
    page = _between_markers(page, "parameters", parameter_table(study_parameters()))
    return _between_markers(page, "measurement", parameter_table(parameters_of(Scope.MEASUREMENT)))


def parameter_table(parameters: Mapping[str, Parameter]) -> str:
    """Return a table in Markdown: default, valid values and meaning of each parameter."""
    lines = ["| parameter | default | values | meaning |", "|---|---|---|---|"]
    for name, parameter in parameters.items():
        default = "must be given" if parameter.default is None else f"`{parameter.default}`"
        meaning = f"{parameter.meaning}; {parameter.note}" if parameter.note else parameter.meaning
        lines.append(f"| `{name}` | {default} | {_valid_values(parameter)} | {meaning} |")
    return "\n".join(lines)


def run_notebook() -> str:
    """Return the notebook of one configuration with its ``parameters`` cell made anew."""
    notebook = json.loads(RUN_NOTEBOOK.read_text(encoding="utf-8"))
    values = {name: EXAMPLE.get(name, parameter.default) for name, parameter in PARAMETERS.items()}
    lines = [f"{name} = {_literal(value)}" for name, value in values.items()]
    for cell in notebook["cells"]:
        if "parameters" in cell["metadata"].get("tags", ()):
            cell["source"] = "\n".join(lines).splitlines(keepends=True)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


#: What each generated file must hold.
GENERATED: dict[Path, Callable[[], str]] = {
    PARAMS / "schema" / "study.schema.json": lambda: schema_text(StudyFile),
    PARAMS / "schema" / "cluster.schema.json": lambda: schema_text(
        cluster_file_model(sections_of(launchers.by_name()))
    ),
    columns.COLUMNS_PAGE: columns.as_markdown,
    STUDY_FILES_PAGE: study_files_page,
    RUN_NOTEBOOK: run_notebook,
}


def write_generated() -> None:
    """Write every generated file anew."""
    for path, text in GENERATED.items():
        path.write_text(text(), encoding="utf-8")


def _cluster_file() -> type[BaseModel]:
    return cluster_file_model(sections_of(launchers.by_name()))


def _between_markers(page: str, name: str, content: str) -> str:
    """Return a page with other content between the comments ``<!-- name -->`` and ``<!-- end of name -->``."""
    pattern = rf"(<!-- {name}: [^>]*-->\n\n).*?(\n\n<!-- end of {name} -->)"
    return re.sub(pattern, lambda match: match[1] + content + match[2], page, flags=re.DOTALL)


def _valid_values(parameter: Parameter) -> str:
    """Return the values that a parameter may have, in Markdown: its levels or bounds, and the unit."""
    parts = {"framework": frameworks.names, "model": models.names}
    levels = parts[parameter.name]() if parameter.name in parts else parameter.levels
    if levels:
        return ", ".join(f"`{level}`" for level in levels)
    if parameter.type is bool:
        return "`true`, `false`"
    if parameter.bounds is None:
        return "see meaning"
    smallest, largest = parameter.bounds
    more_than = "more than " if parameter.above_bound else ""
    return f"{more_than}{smallest:,} to {largest:,} {parameter.unit}".strip()


def _literal(value: Scalar | None) -> str:
    """Return a value as the notebook's Python source has it."""
    return json.dumps(value) if isinstance(value, str) else repr(value)


if __name__ == "__main__":
    write_generated()
