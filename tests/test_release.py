"""What is checked before a release is built; the build itself is in tests/test_installed_package.py."""

import pytest
import yaml

from dlperf_study.core.paths import PROJECT
from tools.release import ReleaseError, check_version, main

PYPROJECT = '[project]\nversion = "1.2.0"\n'


def test_a_tag_of_the_version_with_a_section_is_released():
    assert check_version("v1.2.0", PYPROJECT, "# Changelog\n\n## 1.2.0, 2027-01-31\n\nText.\n") == "1.2.0"


@pytest.mark.parametrize(
    ("tag", "changelog", "reason"),
    [
        ("v1.2.1", "## 1.2.0, 2027-01-31\n", "the tag is v1.2.1; version 1.2.0 of pyproject.toml has the tag v1.2.0"),
        ("v1.2.0", "## 1.1.0, 2026-12-31\n", "no section for 1.2.0"),
        ("v1.2.0", "## 1.2.0, not released yet\n", "write the date"),
    ],
)
def test_what_does_not_agree_is_not_released(tag, changelog, reason):
    with pytest.raises(ReleaseError, match=reason):
        check_version(tag, PYPROJECT, changelog)


def test_a_wrong_tag_is_one_message_and_builds_nothing(tmp_path, capsys):
    assert main([str(tmp_path / "dist"), "v0.0.0"]) == 1
    assert capsys.readouterr().err.startswith("not released: the tag is v0.0.0")
    assert not (tmp_path / "dist").exists()


def test_the_workflow_publishes_what_the_script_built():
    workflow = yaml.safe_load((PROJECT / ".github" / "workflows" / "release.yaml").read_text(encoding="utf-8"))
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    assert 'python -m tools.release dist "$GITHUB_REF_NAME"' in [step.get("run") for step in build["steps"]]
    assert (publish["needs"], publish["environment"], publish["permissions"]) == (
        "build",
        "pypi",
        {"id-token": "write"},
    )
