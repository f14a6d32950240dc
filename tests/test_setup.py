"""Setting up: what is missing is said in one message. The set-up that succeeds is how these tests got here."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

import pytest

from dlperf_study.core.paths import PROJECT
from tests.requirements import PYTHON_HEADERS, need
from tests.shell_program import program
from tools import horovod_build
from tools import install as tools_install
from tools.horovod_build import BUILDS, write_compiler
from tools.install import LIBRARIES
from tools.installer import InstallationError, Log, is_installed, lock_digest, misfits, need_free

TOOLS = ("sh", "df", "awk", "tail", "rm", "touch", "env")
HOROVOD = BUILDS["horovod"]


def set_up(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(PROJECT / "pyproject.toml", folder)
    shutil.copytree(PROJECT / "locks", folder / "locks", dirs_exist_ok=True)
    command = ["sh", str(PROJECT / "tools" / "setup.sh")]
    return subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True)


def path_with(folder: Path, *names: str) -> str:
    """Return a PATH on which only these commands are found."""
    folder.mkdir()
    for name in names:
        program = shutil.which(name)
        assert program, name
        (folder / name).symlink_to(program)
    return str(folder)


def test_no_python_is_said(tmp_path):
    done = set_up(tmp_path, PATH=path_with(tmp_path / "bin", *TOOLS), PYTHON_FOR_SETUP="")
    assert done.returncode == 1
    assert "set-up failed: Python 3.11, 3.12 or 3.13 is needed.\n" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_a_python_that_is_too_old_is_named(tmp_path):
    tools = Path(path_with(tmp_path / "bin", *TOOLS))
    old = program(tools, 'test "$1" = --version && echo "Python 3.9.2"', "python3")
    done = set_up(tmp_path, PATH=str(tools), PYTHON_FOR_SETUP="")
    assert f"set-up failed: found Python 3.9.2 at {old}; Python 3.11, 3.12 or 3.13 is needed.\n" in done.stderr
    done = set_up(tmp_path, PYTHON_FOR_SETUP=old)
    assert f"found Python 3.9.2 at {old}; " in done.stderr


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("no_python", "there is no program PYTHON_FOR_SETUP=no_python"),
        ("true", "; Python 3.11, 3.12 or 3.13 is needed."),
    ],
)
def test_a_program_that_is_no_python_is_refused(tmp_path, name, problem):
    done = set_up(tmp_path, PYTHON_FOR_SETUP=name)
    assert done.returncode == 1
    assert problem in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_a_second_set_up_beside_another_is_refused(tmp_path):
    (tmp_path / "locks").mkdir()
    shutil.copy(PROJECT / "locks" / "main.txt", tmp_path / "locks")
    with (tmp_path / "locks" / "main.txt").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = set_up(tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith("another set-up is running in this folder. Wait for it to end\n")
    assert not (tmp_path / ".venv").exists()


def test_without_a_python_uv_makes_the_environment(tmp_path):
    tools = Path(path_with(tmp_path / "bin", *TOOLS, "mkdir", "cat"))
    program(tools, f'echo "$@" >{tmp_path}/arguments; exit 1', "uv")
    done = set_up(tmp_path, PATH=str(tools), PYTHON_FOR_SETUP="")
    assert "Python 3.12 from uv" in done.stdout
    assert "Is there a network?" in done.stderr
    assert (tmp_path / "arguments").read_text() == "venv --quiet --seed --python 3.12 .venv\n"


def test_a_full_disk_is_said(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    program(tools, "printf 'Filesystem 1M Used Available\\nx 100 99 1 99%% /\\n'", "df")
    done = set_up(tmp_path, PATH=f"{tools}:{os.environ['PATH']}")
    assert done.returncode == 1
    assert "1 MB free" in done.stderr


@pytest.mark.timeout(120)
def test_no_network_is_said_and_nothing_counts_as_set_up(tmp_path):
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_FIND_LINKS": "", "PIP_RETRIES": "0"}
    done = set_up(tmp_path, PIP_CONFIG_FILE=os.devnull, PIP_EXTRA_INDEX_URL="", **nowhere)
    assert done.returncode == 1
    assert "Is there a network?" in done.stderr
    assert not (tmp_path / ".venv" / ".ready").exists()


def test_a_library_of_the_system_that_paddle_misses_is_said(tmp_path):
    python = """case "$*" in
        *version_info*) echo True;;
        *"import paddle"*) echo "ImportError: libgomp.so.1: cannot open shared object file" >&2; exit 1;;
        "-m venv .venv") mkdir -p .venv/bin; cp "$0" .venv/bin/python;;
    esac"""
    program(tmp_path, python, "python")
    done = set_up(tmp_path, PYTHON_FOR_SETUP=str(tmp_path / "python"))
    assert done.returncode == 1
    assert "ImportError: libgomp.so.1" in done.stderr
    assert "apt install libgomp1" in done.stderr
    assert not (tmp_path / ".venv" / ".ready").exists()


@pytest.mark.parametrize("is_complete", [True, False])
def test_an_environment_is_brought_up_to_date_if_it_is_complete_and_made_anew_otherwise(tmp_path, is_complete):
    python = """case "$*" in
        *version_info*) echo True;;
        "-m venv .venv") mkdir -p .venv/bin; cp "$0" .venv/bin/python;;
    esac"""
    program(tmp_path, python, "python")
    assert set_up(tmp_path, PYTHON_FOR_SETUP=str(tmp_path / "python")).returncode == 0
    installed, ready = tmp_path / ".venv" / "torch", tmp_path / ".venv" / ".ready"
    installed.touch()
    if not is_complete:
        ready.unlink()
    done = set_up(tmp_path, PYTHON_FOR_SETUP=str(tmp_path / "python"))
    assert (done.returncode, ready.exists(), installed.exists()) == (0, True, is_complete)
    assert ("updating .venv" in done.stdout) is is_complete


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """Return an environment with the packages of this one, and with logs and stamps of its own."""
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "these.pth").write_text(sysconfig.get_path("purelib"))
    return folder


def install(part: str, environment: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run an installer in an environment, with a cache of its own and without a network."""
    settings = {"XDG_CACHE_HOME": str(environment / "cache"), "PIP_NO_INDEX": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [str(environment / "bin" / "python"), "-m", "tools.install", part]
    return subprocess.run(
        command, cwd=PROJECT, env={**os.environ, **settings, **variables}, capture_output=True, text=True
    )


def call_torch_installed(environment: Path) -> None:
    (environment / ".torch-ready").write_text(f"torch {metadata.version('torch')}, lock {lock_digest()}")


@pytest.mark.needs("torch")
def test_an_installed_library_is_checked_once(environment):
    first, second = install("torch", environment), install("torch", environment)
    assert (first.returncode, second.returncode) == (0, 0), first.stderr
    assert "torch 2/2" in first.stdout
    assert second.stdout == f"torch: installed and checked: torch {metadata.version('torch')}\n"


@pytest.mark.needs("torch")
def test_a_new_build_of_torch_and_a_new_lock_are_checked_again(tmp_path, monkeypatch):
    torch, version = LIBRARIES["torch"], metadata.version("torch")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    call_torch_installed(tmp_path)
    assert torch.is_done()
    for key in (f"torch 2.13.0+cu999, lock {lock_digest()}", f"torch {version}, lock 0123456789"):
        torch.stamp.write(key)
        assert not torch.is_done()


@pytest.mark.needs("torch")
def test_horovod_comes_after_torch(environment):
    done = install("horovod", environment, PATH=str(environment / "bin"))
    assert done.stdout.index("torch 2/2") < done.stdout.index("horovod 1/4")


def test_an_unknown_name_is_refused_with_all_names(environment):
    done = install("pytorch", environment)
    assert done.returncode == 2
    assert "there is no pytorch; choose from torch, tensorflow, " in done.stderr


@pytest.mark.needs("torch")
def test_all_that_a_build_lacks_is_said_at_once(environment):
    call_torch_installed(environment)
    done = install("horovod", environment, PATH=str(environment / "bin"), CXX="no-such-compiler -m64")
    assert done.returncode == 1
    assert "no-such-compiler, make" in done.stderr
    assert not (environment / ".horovod-ready").exists()
    assert not (environment / "cache").exists()


@pytest.mark.needs("torch", "g++", "make", PYTHON_HEADERS)
def test_a_build_that_fails_leaves_no_wheel_and_no_stamp(environment):
    call_torch_installed(environment)
    done = install("horovod", environment, PIP_FIND_LINKS="")
    assert done.returncode == 1
    assert "Horovod was not built" in done.stderr
    assert "found for horovod" in done.stderr
    assert not (environment / ".horovod-ready").exists()
    assert not (environment / "cache").exists()


def test_a_failure_shows_the_first_errors_and_the_last_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    script = "echo 'x.cc:1: error: no member'; i=0; while [ $i -lt 50 ]; do i=$((i+1)); echo line $i; done; exit 3"
    with pytest.raises(InstallationError, match="It broke") as raised:
        Log("some.log").run(["sh", "-c", script], "It broke.")
    assert "no member" in str(raised.value)
    assert "line 50" in str(raised.value)
    assert "line 20\n" not in str(raised.value)
    assert "line 20\n" in (tmp_path / "some.log").read_text()


def test_too_small_a_disk_for_a_build_is_said(tmp_path):
    with pytest.raises(InstallationError, match="about 1000000000 MB"):
        need_free(tmp_path, 10**9, "compiling")


def test_a_package_is_found_or_not():
    assert is_installed("pytest")
    assert not is_installed("no-such-package")


def build_options(environment: dict[str, str]) -> dict[str, str]:
    return horovod_build.build_options(HOROVOD, environment)


def test_what_the_user_asks_of_horovod_replaces_the_contrary_default():
    options = build_options({"HOROVOD_WITH_MPI": "1", "HOROVOD_GPU_OPERATIONS": "NCCL"})
    assert options["HOROVOD_WITH_MPI"] == "1"
    assert options["HOROVOD_GPU_OPERATIONS"] == "NCCL"
    assert options["HOROVOD_WITH_GLOO"] == "1"
    assert "HOROVOD_WITHOUT_MPI" not in options


def test_horovod_for_tensorflow_takes_the_same_options_and_is_built_for_tensorflow_alone():
    build = BUILDS["horovod-tensorflow"]
    options = horovod_build.build_options(build, {"HOROVOD_GPU_OPERATIONS": "NCCL", "PATH": "/bin"})
    assert options["HOROVOD_WITH_TENSORFLOW"] == options["HOROVOD_WITHOUT_PYTORCH"] == "1"
    assert options["HOROVOD_GPU_OPERATIONS"] == "NCCL"
    assert "PATH" not in options
    assert horovod_build.key(build, options) != horovod_build.key(build, {})
    assert "tensorflow-cpu-2.15.1" in horovod_build.key(build, options)


@pytest.mark.needs("torch")
@pytest.mark.parametrize(
    ("variable", "is_of_build"),
    [
        *dict.fromkeys(("HOROVOD_GPU_OPERATIONS", "HOROVOD_NCCL_HOME", "HOROVOD_CUDA_HOME", "CXX"), True).items(),
        *dict.fromkeys(("HOROVOD_CYCLE_TIME", "HOROVOD_TIMELINE", "HOROVOD_FUSION_THRESHOLD", "PATH"), False).items(),
    ],
)
def test_each_option_of_a_build_has_a_wheel_of_its_own_and_what_horovod_reads_when_it_runs_has_none(
    variable, is_of_build
):
    default = horovod_build.key(HOROVOD, build_options({}))
    assert (horovod_build.key(HOROVOD, build_options({variable: "1"})) != default) is is_of_build


@pytest.mark.needs("torch")
def test_the_place_of_a_wheel_names_what_it_fits(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = horovod_build.wheel_folder(HOROVOD, build_options({}))
    assert folder.parent == tmp_path / "dlperf_study" / "wheels"
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert folder.name.startswith(f"horovod-0.28.1-torch-{metadata.version('torch')}-{python}-linux")


def test_the_compiler_adds_what_the_headers_of_torch_need(tmp_path):
    need("g++")
    source = tmp_path / "seventeen.cc"
    seventeen = "#include <type_traits>\nuint8_t x; static_assert(std::is_same_v<decltype(x), uint8_t>);\n"
    # Horovod uses these without their headers, which GCC 13 no longer brings along.
    source.write_text(f"{seventeen}std::string text; void fail() {{ throw std::logic_error(text); }}\n")
    flags = ["-std=c++14", "-fsyntax-only", str(source)]
    assert subprocess.run(["g++", *flags], capture_output=True).returncode != 0
    assert subprocess.run([write_compiler(tmp_path, "g++"), *flags]).returncode == 0


@pytest.mark.timeout(120)
@pytest.mark.needs("torch", "horovod")
@pytest.mark.parametrize(
    ("processes", "printed"), [(2, "2 processes on cpu"), (1, "2 processes were started")], ids=["both", "one alone"]
)
def test_the_check_of_horovod_adds_over_processes_and_fails_if_one_is_alone(processes, printed):
    program = [sys.executable, "-m", "tools.all_reduce", "torch", "2"]
    command = [sys.executable, "-m", "horovod.runner.launch", "--gloo", "-np", str(processes), *program]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True)
    assert (done.returncode == 0) is (processes == 2), done.stderr
    assert printed in done.stdout + done.stderr


NOWHERE = "http://127.0.0.1:9/simple"


@pytest.fixture
def remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that remembers indexes, in a folder of its own, with a disk that suffices and no network."""
    monkeypatch.setattr(tools_install, "REMEMBERED", tmp_path / "indexes.json")
    monkeypatch.setattr(tools_install, "GPU_NEEDED_MB", 1)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    monkeypatch.setenv("PIP_RETRIES", "0")
    return tmp_path / "indexes.json"


def test_builds_for_gpus_need_an_address(remembered):
    with pytest.raises(InstallationError, match="PADDLE_INDEX or TORCH_INDEX"):
        tools_install.install_gpu_builds([])
    with pytest.raises(InstallationError, match="'padle=x' is not LIBRARY=ADDRESS"):
        tools_install.install_gpu_builds(["padle=x"])


def test_tensorflow_for_gpus_is_on_the_index_of_pip(remembered, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", NOWHERE)
    with pytest.raises(InstallationError, match=r"no tensorflow==2.20.0(?s:.*)127\.0\.0\.1"):
        tools_install.install_gpu_builds(["tensorflow=default"])
    assert not remembered.exists()


def test_tensorflow_for_gpus_is_not_replaced_by_that_for_cpus(environment):
    (packages,) = environment.glob("lib/python*/site-packages")
    gpu_build = packages / "tensorflow-2.20.0.dist-info"
    gpu_build.mkdir()
    (gpu_build / "METADATA").write_text("Metadata-Version: 2.1\nName: tensorflow\nVersion: 2.20.0\n")
    done = install("tensorflow", environment)
    assert done.stdout.startswith("tensorflow: its build for GPUs")


@pytest.mark.timeout(120)
def test_what_cannot_be_fetched_replaces_nothing_and_is_not_remembered(remembered, capsys):
    with pytest.raises(InstallationError, match=r"paddlepaddle-gpu==3.0.0 at http://127.0.0.1:9/simple"):
        tools_install.install_gpu_builds([f"paddle={NOWHERE}"])
    assert capsys.readouterr().out.startswith("paddle 1/3: fetching paddlepaddle-gpu==3.0.0")
    assert not remembered.exists()
    assert metadata.version("paddlepaddle") == "3.0.0"


@pytest.mark.timeout(120)
def test_an_environment_that_is_made_anew_gets_its_builds_for_gpus_again(remembered):
    remembered.write_text(f'{{"torch": "{NOWHERE}"}}')
    with pytest.raises(InstallationError, match=r"torch==2.13.0 at http://127.0.0.1:9/simple"):
        tools_install.install_gpu_builds([])


def test_builds_that_do_not_fit_together_are_remembered_once_and_named_with_what_to_do(remembered, monkeypatch):
    """A further library is fetched alone, and not all that are remembered again."""
    remembered.write_text('{"paddle": "of-paddle"}')
    fetched: list[str] = []
    monkeypatch.setattr(tools_install, "replace_by_gpu_build", lambda name, index, log: fetched.append(name))

    def misfit() -> None:
        raise InstallationError("The packages do not fit together:\npaddlepaddle-gpu requires nvidia-cudnn-cu12==9.5")

    monkeypatch.setattr(tools_install, "check_packages", misfit)
    with pytest.raises(InstallationError, match=r"requires nvidia-cudnn-cu12==9.5\n"):
        tools_install.install_gpu_builds(["torch=of-torch"])
    assert fetched == ["torch"]
    assert json.loads(remembered.read_text()) == {"paddle": "of-paddle", "torch": "of-torch"}


def test_what_a_build_for_gpus_sees_is_said(snapshot, refused):
    support = {"cuda": "12.6", "gpus": ["NVIDIA L4"], "obstacle": ""}
    assert tools_install.describe_gpus("torch", support) == snapshot
    blind = support | {"gpus": [], "obstacle": "the driver is too old"}
    assert tools_install.describe_gpus("torch", blind) == snapshot
    with refused(InstallationError):
        tools_install.describe_gpus("torch", support | {"cuda": ""})


def test_paddle_for_gpus_replaces_the_one_for_cpus():
    misfit = "a 1 requires b, which is not installed."
    printed = f"dlperf_study 0.1.0 requires paddlepaddle, which is not installed.\n{misfit}\n"
    assert misfits(printed, ["paddlepaddle-gpu"]) == [misfit]
    assert len(misfits(printed, ["torch"])) == 2


def make(*variables: str) -> "subprocess.CompletedProcess[str]":
    """Return what make would do for a plan with these variables, as a person calls it."""
    outside = {name: value for name, value in os.environ.items() if name not in ("MAKELEVEL", "MAKEFLAGS")}
    command = ["make", "--dry-run", "plan", *variables]
    return subprocess.run(command, cwd=PROJECT, env=outside, capture_output=True, text=True)


@pytest.mark.parametrize(("variable", "name"), [("WIAT=1", "WAIT"), ("study=allreduce", "STUDY"), ("TEST=x", "TESTS")])
def test_a_misspelt_variable_of_make_is_refused_with_the_right_one(variable, name):
    done = make(variable)
    assert done.returncode == 2
    assert f"did you mean {name}? The variables are STUDY" in done.stderr
    assert done.stdout == ""


def test_variables_of_other_programs_are_passed_on():
    done = make("DLPERF_STUDY_OUTPUTS=/tmp/x", "STUDY=allreduce", "HOROVOD_WITH_MPI=1")
    assert done.returncode == 0
    assert "plan allreduce" in done.stdout
    assert re.findall("there is no variable (.*?):", done.stderr) == ["DLPERF_STUDY_OUTPUTS"]


@pytest.mark.parametrize(("first", "alone", "ended"), [(0, 0, 0), (1, 0, 0), (1, 1, 1), (2, 0, 2)])
def test_failed_tests_run_once_more_alone(first, alone, ended, tmp_path):
    """A run with code 1 had failed tests; a run with code 2 was interrupted."""
    script = f'echo "$@"; case "$*" in *--last-failed*) exit {alone};; *--numprocesses*) exit {first};; esac'
    command = ["sh", "tools/test.sh", "test-all", program(tmp_path, script), "tests/core"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == ended
    assert ("--last-failed" in done.stdout) is (first == 1)
    assert "-m tools.install torch horovod tensorflow" in done.stdout


def test_the_tests_of_the_default_environment_leave_out_the_matrix(tmp_path):
    command = ["sh", "tools/test.sh", "test", program(tmp_path, 'echo "$@"'), "tests/core"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0
    assert "-m not matrix and not ci tests/core" in done.stdout
    assert "tools.install" not in done.stdout
