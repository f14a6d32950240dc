"""JSON Schemas of the study and cluster files, for editors.

``python -m dlperf_study.schema`` writes them to ``params/schema``.
"""

import json
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from dlperf_study import launchers
from dlperf_study.cluster.cluster_file import sections_of
from dlperf_study.cluster.sections import cluster_file_model
from dlperf_study.study.strict_yaml import PARAMS
from dlperf_study.study.study_file import StudyFile

SCHEMA_FOLDER = PARAMS / "schema"
FILES: dict[str, type[BaseModel]] = {
    "study.schema.json": StudyFile,
    "cluster.schema.json": cluster_file_model(sections_of(launchers.by_name())),
}


class _EditorSchema(GenerateJsonSchema):
    """Leave out the titles pydantic makes from names; editors show the key itself."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema_text(model: type[BaseModel]) -> str:
    """Return the JSON Schema of a file's content."""
    schema = model.model_json_schema(schema_generator=_EditorSchema)
    return json.dumps({"$schema": _EditorSchema.schema_dialect, **schema}, indent=2) + "\n"


def write_schemas() -> None:
    """Write the schema files anew."""
    SCHEMA_FOLDER.mkdir(parents=True, exist_ok=True)
    for name, model in FILES.items():
        (SCHEMA_FOLDER / name).write_text(schema_text(model), encoding="utf-8")


if __name__ == "__main__":
    write_schemas()
