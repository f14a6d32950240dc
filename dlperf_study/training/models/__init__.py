"""The networks a study can train: one file a model, and its name is its name in the YAML."""

from dlperf_study.core.errors import StudyFileError
from dlperf_study.core.registry import Registry
from dlperf_study.training.models._base import Model
from dlperf_study.training.models._sequences import SequenceModel

_MODELS = Registry[Model | SequenceModel](__name__, "MODEL", "model", StudyFileError)
names, load = _MODELS.names, _MODELS.load
