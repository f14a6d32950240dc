"""What is declared of a parameter, once; everything else that knows parameters is derived from it.

Derived are the types of study files (``study_file.py``) and their JSON schema, the columns of the dataset
(``metrics/parameters.py``), the tables of ``docs/study-files.md``, the ``parameters`` cell of
``run_configuration.ipynb``, the captions of the report and what a framework refuses until it has built it.
Standard library only: every training process imports this.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeVar

from dlperf_study.core.errors import StudyFileError

Scalar = str | int | float | bool
Value = TypeVar("Value", str, int, float, bool)

_KEY = "parameter"
#: What a model trains on: labelled images, or sequences of tokens.
IMAGES, SEQUENCES = "images", "sequences"
#: What a throughput counts.
SAMPLES, TOKENS = "samples", "tokens"
#: Tables hold integers of 64 bits.
LARGEST_NUMBER = 2**63 - 1


class Scope(StrEnum):
    """What a parameter belongs to; a study file gives all but the plan's."""

    PLAN = "plan"
    WORKLOAD = "workload"
    NETWORK = "network"
    MEASUREMENT = "measurement"
    SELFTEST = "selftest"


@dataclass(frozen=True)
class Parameter:
    """One parameter of a configuration.

    Attributes:
        label: its name in tables, charts and captions.
        meaning: its definition in schema, columns and docs: plain text that starts in lower case.
        scope: what it belongs to.
        unit: of its values, as pages print it.
        allowed_values: the strings it may be; empty for any string, and for other types.
        bounds: the smallest and the largest number it may be. A default below them is valid too: with it the
            library chooses.
        above_bound: whether the smallest number itself is too small.
        in_identity: whether another value makes another configuration, which is measured anew.
        always_known: whether it is known of every run, ingested ones included.
        published: whether the table of published numbers has it too.
        note: what ``docs/study-files.md`` adds to the meaning, in Markdown.
        default_name: what pages print of a default that is below the bounds, as -1.
        samples: the kind of samples that it is about, ``IMAGES`` or ``SEQUENCES``: of a configuration that trains on
            others it is unstated; empty: it is about all.
        name, type, default: of the field that declares it; without a default, a study must give the value.

    """

    label: str
    meaning: str
    scope: Scope = Scope.WORKLOAD
    unit: str = ""
    allowed_values: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None
    above_bound: bool = False
    in_identity: bool = True
    always_known: bool = False
    published: bool = False
    note: str = ""
    default_name: str = ""
    samples: str = ""
    name: str = ""
    type: type = str
    default: Scalar | None = None

    def is_named_default(self, value: Any) -> bool:
        """Return whether a value is the default and has a name."""
        return bool(self.default_name) and value == self.default


def parameter(default: Value, label: str, meaning: str, **details: Any) -> Value:
    """Return the dataclass field of a parameter with a default."""
    value: Value = field(default=default, metadata=declared(label, meaning, **details))
    return value


def declared(label: str, meaning: str, **details: Any) -> Mapping[str, Parameter]:
    """Return the metadata of a field that declares a parameter."""
    return {_KEY: Parameter(label, meaning, **details)}


def declared_parameter(declaration: "Field[Any]") -> Parameter:
    """Return the parameter that a dataclass field declares."""
    parameter: Parameter = declaration.metadata[_KEY]
    value_type: Any = declaration.type
    default = None if declaration.default is MISSING else declaration.default
    return replace(parameter, name=declaration.name, type=value_type, default=default)


def typed(source: str, parameter: Parameter, value: Any) -> Any:
    """Return ``value`` as the parameter's type.

    Raises StudyFileError, which names ``source``, where it is of another type, or larger than any number may be.
    """
    if type(value) in (int, float) and not abs(value) <= LARGEST_NUMBER:
        raise StudyFileError(f"{source}: {parameter.name} is {value!r}, which is not a number up to {LARGEST_NUMBER}")
    if parameter.type is float and type(value) is int:
        return float(value)
    if type(value) is not parameter.type:
        expected = parameter.type.__name__
        raise StudyFileError(f"{source}: {parameter.name} is {value!r}, which is not of type {expected}")
    return value
