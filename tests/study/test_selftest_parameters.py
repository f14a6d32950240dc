"""The parameters of the self-test: they name other configurations, and no other study may have them."""

import pytest

from dlperf_study.core.errors import StudyFileError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.study.configuration import Configuration, parameters_in_scope
from dlperf_study.study.parameter import Scope
from dlperf_study.study.plan import build_plan
from dlperf_study.study.study_file import load_study
from tests.evidence_factory import configuration
from tests.study.examples import STUDY, anything_goes, cluster, write

CHANGED = [("replica", 1), ("injected_slowdown", 0.05), ("slowed_rank", 0)]


def test_the_parameters_of_the_selftest_are_in_no_identity_by_default():
    assert [name for name, _ in CHANGED] == list(parameters_in_scope(Scope.SELFTEST))
    assert parameters_in_scope(Scope.SELFTEST).keys().isdisjoint(configuration().identifying_values())
    shared = StudyPaths.of("selftest").folder
    assert StudyPaths.of("selftest_pairs_01").folder == shared / "selftest_pairs_01"
    assert StudyPaths.of("selftests").folder == shared.parent / "selftests"


@pytest.mark.parametrize(("name", "value"), CHANGED)
def test_another_value_is_another_configuration(name, value):
    changed = configuration(study="selftest_x", **{name: value})
    assert changed.configuration_id != configuration(study="selftest_x").configuration_id
    assert changed.identifying_values()[name] == value


@pytest.mark.parametrize(("name", "value"), CHANGED)
def test_no_other_study_may_have_them(name, value, refused):
    values = configuration().as_dict() | {name: value}
    with refused(StudyFileError):
        Configuration.from_mapping(values, "run.json")
    assert Configuration.from_mapping(values | {"study": "selftest_x"}).selftest_values() == {name: value}


def test_a_study_file_that_plants_something_or_calls_itself_a_selftest_is_refused(tmp_path, refused):
    file = write(tmp_path, STUDY.replace("constants: {", "constants: {injected_slowdown: 0.1, "))
    with pytest.raises(StudyFileError) as caught:
        build_plan(load_study(file), cluster(), anything_goes)
    assert str(caught.value).startswith(f"{file}: injected_slowdown is allowed ")
    with refused(StudyFileError):
        load_study(write(tmp_path, name="selftest_mine"))
