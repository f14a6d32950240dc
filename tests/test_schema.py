import json

import pytest
import yaml
from jsonschema import Draft202012Validator

from dlperf_study.schema import FILES, SCHEMA_FOLDER, schema_text
from dlperf_study.study.strict_yaml import PARAMS


@pytest.mark.parametrize("name", FILES)
def test_the_schema_files_are_the_exported_ones(name):
    written = (SCHEMA_FOLDER / name).read_text(encoding="utf-8")
    assert written == schema_text(FILES[name]), "export them again: python -m dlperf_study.schema"


@pytest.mark.parametrize("file", sorted(PARAMS.glob("*/*.yaml")), ids=lambda file: file.stem)
def test_every_file_names_its_schema_and_fits_it(file):
    first, text = file.read_text(encoding="utf-8").split("\n", 1)
    prefix = "# yaml-language-server: $schema="
    assert first.startswith(prefix)
    schema = json.loads((file.parent / first.removeprefix(prefix)).read_text(encoding="utf-8"))
    assert [error.message for error in Draft202012Validator(schema).iter_errors(yaml.safe_load(text))] == []
