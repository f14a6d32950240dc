"""The networks a study can train: one file a model, and its name is its name in the YAML."""

import importlib
import pkgutil

from dlperf_study.errors import StudyFileError
from dlperf_study.models._base import Model


def names() -> tuple[str, ...]:
    """Return the names of all models, sorted; imports none of them."""
    modules = (module.name for module in pkgutil.iter_modules(__path__))
    return tuple(sorted(name for name in modules if name != "base" and not name.startswith("_")))


def load(name: str) -> Model:
    """Return the model of that name; raises StudyFileError with the choices."""
    if name not in names():
        raise StudyFileError(f"model is {name!r}, which is not a model; the models are {', '.join(names())}")
    model: Model = importlib.import_module(f"{__name__}.{name}").MODEL
    return model
