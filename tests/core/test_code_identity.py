"""What a run imports is the identity of its code: which changes of which files change it."""

from pathlib import Path

import pytest

from dlperf_study.core import code_identity
from dlperf_study.core.code_identity import (
    CONTROLLER_CODE_VARIABLE,
    PACKAGE_FOLDER,
    code_digest,
    code_of_controller,
    describe_controller_code,
    module_digests,
    require_code_of_controller,
)
from dlperf_study.core.errors import RunError
from dlperf_study.core.part_search import PARTS_VARIABLE

PACKAGE = {
    "__init__.py": "",
    "core/__init__.py": "",
    "core/words.py": "WORDS = 1\n",
    "training/__init__.py": "",
    "training/worker/__init__.py": "",
    "training/worker/__main__.py": (
        '"""The program."""\nfrom dlperf_study.core import words\n\n\ndef main() -> None:\n    return\n'
    ),
    "training/sgd.py": (
        '"""A strategy."""\n\n\ndef job() -> object:\n    """Do it."""\n    from dlperf_study.training import _tasks\n'
        '    return _tasks, ["-m", "dlperf_study.training.worker"]\n'
    ),
    "training/_tasks.py": "TASKS = 2\n",
    "training/adam.py": "OTHER = 3\n",
}
ROOT = ("dlperf_study.training.sgd",)


def package(folder: Path, files: dict[str, str]) -> Path:
    """Write a package and return its folder."""
    for name, text in files.items():
        file = folder / "dlperf_study" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder / "dlperf_study"


def digest(folder: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(code_identity, "PACKAGE_FOLDER", package(folder, files))
    return code_digest(ROOT)


def test_imports_are_followed_also_inside_of_functions_and_to_what_is_started_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(code_identity, "PACKAGE_FOLDER", package(tmp_path, PACKAGE))
    names = {name.removeprefix("dlperf_study.training") for name in module_digests(ROOT)}
    assert names == {"", ".sgd", "._tasks", ".worker", ".worker.__main__"}
    assert code_digest(()) == ""


@pytest.mark.parametrize(
    ("file", "text", "is_same"),
    [
        ("training/momentum.py", "NEW = 1\n", True),
        ("training/adam.py", "OTHER = 4\n", True),
        ("core/words.py", "WORDS = 2\n", True),
        ("__init__.py", "VERSION = 2\n", True),
        ("training/_tasks.py", '"""Tasks."""\n# How many.\nTASKS = (\n    2\n)\n', True),
        ("training/_tasks.py", "TASKS = 3\n", False),
        ("training/__init__.py", "import dlperf_study.training.adam\n", False),
        ("training/worker/__init__.py", "LIMIT = 1\n", False),
        ("training/worker/__main__.py", "def main() -> None:\n    return 1\n", False),
    ],
)
def test_only_a_change_of_what_is_imported_changes_the_code(file, text, is_same, tmp_path, monkeypatch):
    before = digest(tmp_path / "before", PACKAGE, monkeypatch)
    assert (digest(tmp_path / "after", PACKAGE | {file: text}, monkeypatch) == before) is is_same


@pytest.mark.parametrize(
    ("controller", "reason"),
    [
        (None, ""),
        (describe_controller_code(ROOT), ""),
        (f"0ther 0ther {ROOT[0]} {PACKAGE_FOLDER}", "changed since"),
        (f"0ther 0ther {ROOT[0]} /else where", "the controller runs the code in /else where, this process"),
    ],
)
def test_a_process_with_other_code_than_its_driver_says_where_both_are(controller, reason):
    environment = {} if controller is None else {CONTROLLER_CODE_VARIABLE: controller}
    assert code_of_controller(environment) == ("" if controller is None else controller.split(" ")[0])
    if reason:
        with pytest.raises(RunError, match=reason):
            require_code_of_controller(environment)
    else:
        require_code_of_controller(environment)


def test_parts_of_the_user_are_compared_by_what_they_import(tmp_path, monkeypatch):
    _, files, roots, folder = describe_controller_code(ROOT).split(" ", 3)
    controller = {CONTROLLER_CODE_VARIABLE: f"0ther {files} {roots} {folder}"}
    require_code_of_controller(controller)
    with pytest.raises(RunError, match="changed since"):
        require_code_of_controller({CONTROLLER_CODE_VARIABLE: f"0ther {files} {roots},adam_of_somebody {folder}"})
    monkeypatch.setenv(PARTS_VARIABLE, str(tmp_path))
    with pytest.raises(RunError, match="changed since"):
        require_code_of_controller(controller)


def test_a_lock_of_an_editor_beside_the_files_is_none_of_them(tmp_path, monkeypatch):
    folder = package(tmp_path, PACKAGE)
    monkeypatch.setattr(code_identity, "PACKAGE_FOLDER", folder)
    controller = {CONTROLLER_CODE_VARIABLE: describe_controller_code(ROOT)}
    (folder / "training" / ".#adam.py").symlink_to("somebody@somewhere.1:2")
    assert controller == {CONTROLLER_CODE_VARIABLE: describe_controller_code(ROOT)}
    require_code_of_controller(controller)
