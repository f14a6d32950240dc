"""What the pages tell a reader to type: every command is run, here or elsewhere."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from dlperf_study.cli.parser import command_parser
from dlperf_study.core.paths import PROJECT
from tests.command_line import typed
from tests.docs import PAGES, blocks

#: Commands that take long or write into the project, and the step of CI or the test that runs what they run.
RUN_ELSEWHERE = {
    r"make test": (".ci/run", "make test\n"),
    r"make test-all": (".ci/run", "REQUIRE_ALL=1 make test-all"),
    r"make test-ci": (".ci/run", "REQUIRE_ALL=1 make test-ci"),
    r"make docs": ("tests/test_docs_site.py", "mkdocs"),
    r"make (torch|tensorflow|horovod|horovod-tensorflow|dali)( .*)?": ("Makefile", "-m tools.install $@"),
    r"make gpu .*": ("tests/test_install.py", "install_gpu_builds("),
    r"python -m tools\.install horovod": ("tools/test.sh", "-m tools.install torch horovod"),
    r"pip install -c locks/main\.txt -e \S+": ("tests/test_environment.py", '"pip", "install", "--dry-run"'),
    r"make study.*": (".ci/run", "make study STUDY=quickstart QUICK=1"),
    r"make selftest.*|dlperf-study selftest.*": (".ci/run", "make selftest QUICK=1"),
    r"make data.*|dlperf-study make-data.*": ("tests/training/image_datasets/test_photographs.py", 'main(["make-data"'),
    r"cp params/clusters/.*": ("tests/machines/clusters/test_check.py", '"cpu_hosts.yaml"'),
    r"make check-cluster.*": ("tests/machines/clusters/test_check.py", "make check-cluster CLUSTER="),
    r"dlperf-study check-cluster .*": ("tests/machines/check/test_check.py", 'main(["check-cluster"'),
    r"(make|dlperf-study) plan .*mine.*": ("tests/machines/clusters/test_check.py", "make plan STUDY="),
    r"dlperf-study run .*": (".ci/run", "make study STUDY=quickstart QUICK=1"),
    r"dlperf-study report .*": ("tests/report/pages/test_pages.py", "build("),
    r"dlperf-study ingest .*": ("tests/cli/test_cli_ingest.py", 'main(["ingest"'),
    r"dlperf-study audit (\S+\.csv|--published).*": ("tests/cli/test_cli_output.py", 'main(["audit"'),
    r"make paper.*|dlperf-study paper .*": ("tests/report/test_paper.py", 'main(["paper"'),
    r"dlperf-study compare .*": ("tests/dataset/test_changes.py", 'main(["compare"'),
    r"dlperf-study predict .*": ("tests/prediction/test_predict.py", 'main(["predict"'),
    r"dlperf-study measure .*": ("tests/test_installed_package.py", 'installation.run("measure"'),
    r"dlperf-study init mine": ("tests/test_installed_package.py", 'installation.run("init", "mine")'),
    r"dlperf-study (plan|run|report) train_torch.*": ("tests/test_tutorial.py", "train_torch"),
    r"git clone .*": (".ci/run", "a clean clone"),
    r"make test TESTS=.*": ("tools/test.sh", "for test; do"),
    r"make fuzz": ("Makefile", "-m tests.fuzzing $(MINUTES)"),
    r"python -m tools\.mutants .*": ("tests/test_equivalent_mutants.py", "tools/mutants.py"),
    r"SIMULATED=400 python -m pytest tests/simulations .*": ("tests/simulations/__init__.py", "SIMULATED"),
    r"dlperf-study plan two_devices": ("tests/test_docs_study_files.py", "load_study("),
    # No daemon of Docker may run where tests run: what a recipe copies and runs is tested.
    r"docker (build|push) .*": ("tests/machines/launchers/test_kubernetes_manifests.py", "docker build -f images/"),
    r"pip install \S+": ("tests/installation.py", '"--no-deps", "--no-compile", wheel'),
    r"python -m dlperf_study\.generated": ("tests/test_generated.py", "test_a_generated_file_is_up_to_date"),
}


def commands_of(page: Path) -> Iterator[str]:
    for block in blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            command = shlex.join(shlex.split(line, comments=True))
            if command:
                yield command


COMMANDS = sorted({command for page in PAGES for command in commands_of(page)})
MAKE = [command for command in COMMANDS if command.startswith("make ")]
#: Those about a study of this package.
_ABOUT_A_STUDY = r"dlperf-study (plan|run|report|paper) (?!.*(mine|train_torch|two_devices|nodes|NAME|STUDY))"
OF_THE_PACKAGE = [command for command in COMMANDS if re.match(_ABOUT_A_STUDY, command)]


def test_there_are_pages_and_commands():
    assert len(PAGES) > 10
    assert {"make study", "make test", "make lab"} <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_run_here_or_elsewhere(command, tmp_path):
    for pattern, (file, text) in RUN_ELSEWHERE.items():
        if re.fullmatch(pattern, command):
            assert text in (PROJECT / file).read_text(encoding="utf-8"), f"{file} no longer runs it"
            return
    # JupyterLab as `make lab` starts it, told to say its version instead of opening a browser.
    ended = typed(f"{command} LAB=--version" if command == "make lab" else command, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip()
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("command", MAKE)
def test_every_make_command_has_its_target(command, tmp_path):
    ended = typed(command.replace("make ", "make -n ", 1), tmp_path)
    assert ended.returncode == 0, ended.stderr


def test_make_starts_nothing_where_it_only_prints(tmp_path):
    ended = typed(f"make -n test PYTHON='touch {tmp_path / 'started'} #'", tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("command", OF_THE_PACKAGE)
def test_every_command_about_a_study_names_one_there_is(command, tmp_path):
    _, _, study = command.split()[:3]
    ended = typed(f"dlperf-study plan {study}", tmp_path)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("dlperf-study ")])
def test_every_option_of_a_command_exists(command):
    """A misspelt option, and a command without a needed argument, end with code 2."""
    command_parser().parse_args(shlex.split(command)[1:])
