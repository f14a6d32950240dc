"""The networks a study can train: one file a model, and its name is its name in the YAML."""

from dlperf_study.errors import StudyFileError
from dlperf_study.models._base import Model
from dlperf_study.registry import Registry

_MODELS = Registry[Model](__name__, "MODEL", "model", StudyFileError)
names, load = _MODELS.names, _MODELS.load
