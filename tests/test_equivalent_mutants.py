"""The list of changes that make no difference is about the code as it is: see tools/mutants.py."""

import pytest
import yaml

from dlperf_study.core.paths import PROJECT

SECTIONS = yaml.safe_load((PROJECT / "tests" / "equivalent_mutants.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("section", [section for section in SECTIONS if section != "everywhere"])
def test_each_line_that_may_be_changed_is_in_its_module(section):
    lines = {line.strip() for line in (PROJECT / section).read_text(encoding="utf-8").splitlines()}
    assert {item["before"] for item in SECTIONS[section]} <= lines


def test_each_change_has_a_reason():
    for items in SECTIONS.values():
        for item in items:
            assert set(item) == {"before", "after", "why"}
            assert item["before"] != item["after"]
