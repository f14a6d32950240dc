"""The networks a study can train: one file a model, or one key of ``sizes.yaml``; its name is its name in the YAML."""

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

from dlperf_study.core.errors import StudyFileError
from dlperf_study.core.registry import Registry
from dlperf_study.core.wording import unknown_name
from dlperf_study.training.models._base import Model
from dlperf_study.training.models._sequences import SequenceModel, Sizes

#: What a size declares besides the fields of ``Sizes``.
TEXTS = ("kind", "display_name", "source")
KINDS = ("bert", "gpt", "llama")


def sized(name: str, values: Mapping[str, Any]) -> SequenceModel:
    """Return the transformer of a key of ``sizes.yaml``."""
    keys = (*TEXTS, *(field.name for field in fields(Sizes)))
    for key in values:
        if key not in keys:
            raise StudyFileError(unknown_name("a key is", key, "keys", keys))
    for key in (*TEXTS, "layers", "hidden", "heads", "vocabulary"):
        if key not in values:
            raise StudyFileError(f"{key} is missing")
    kind = values["kind"]
    if kind not in KINDS:
        raise StudyFileError(unknown_name("kind is", kind, "kinds", KINDS))
    sizes = Sizes(**{key: value for key, value in values.items() if key not in TEXTS})
    model: SequenceModel = import_module(f"{__name__}._{kind}").model(
        name, values["display_name"], sizes, values["source"]
    )
    return model


_MODELS = Registry[Model | SequenceModel](__name__, "MODEL", "model", StudyFileError, sized)
names, load = _MODELS.names, _MODELS.load
