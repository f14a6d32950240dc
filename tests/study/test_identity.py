"""The identity of a configuration stays the same when parameters are added that it does not use."""

from dataclasses import replace

import pytest

from dlperf_study.study.configuration import IDENTIFIED_BY_DEFAULT, PARAMETERS, Configuration
from dlperf_study.study.parameter import Parameter
from tests.evidence_factory import configuration

#: Of the configuration that ``evidence_factory`` makes, as it was before any parameter was added.
FIRST_IDENTITY = "paddle_collective-data_parallel-resnet50-1n1d-b32-fp32-284b5ceb"
ADDED = [entry for name, entry in PARAMETERS.items() if name not in IDENTIFIED_BY_DEFAULT and entry.in_identity]


def changed_value(parameter: Parameter) -> object:
    """Return a value of a parameter that is not its default."""
    if parameter.allowed_values:
        return next(value for value in parameter.allowed_values if value != parameter.default)
    return f"{parameter.default}x" if parameter.type is str else parameter.type(parameter.default + 1)


def changed(parameter: Parameter) -> Configuration:
    return replace(configuration(), **{parameter.name: changed_value(parameter)})


def test_an_identity_of_the_first_release_is_still_the_same():
    assert configuration().configuration_id == FIRST_IDENTITY
    assert PARAMETERS.keys() >= IDENTIFIED_BY_DEFAULT


@pytest.mark.parametrize("parameter", ADDED, ids=lambda parameter: parameter.name)
def test_an_added_parameter_is_in_the_identity_unless_it_has_its_default(parameter):
    assert parameter.name not in configuration().identifying_values()
    assert changed(parameter).identifying_values()[parameter.name] == changed_value(parameter)
    assert changed(parameter).configuration_id != FIRST_IDENTITY
