"""Installing: what is installed and checked is not installed again, and what fails is one message."""

import json
import os
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

import pytest

from dlperf_study.core.paths import PROJECT
from tests.requirements import PYTHON_HEADERS, need
from tools import horovod_build
from tools import install as tools_install
from tools.horovod_build import BUILDS, write_compiler
from tools.install import LIBRARIES
from tools.installer import InstallationError, Log, is_installed, lock_digest, misfits, need_free

HOROVOD = BUILDS["horovod"]


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
