"""The networks a study can train: one file a model, and its name is its name in the YAML."""

from importlib import import_module

from dlperf_study import registry
from dlperf_study.errors import StudyFileError
from dlperf_study.models._base import Model


def names() -> tuple[str, ...]:
    """Return the models there are, in alphabetical order."""
    return registry.names(__name__)


def load(name: str) -> Model:
    """Return the model called ``name``; no library is imported."""
    if name not in names():
        raise StudyFileError(registry.unknown("model is", name, "models", names()))
    model: Model = import_module(f"{__name__}.{name}").MODEL
    return model
