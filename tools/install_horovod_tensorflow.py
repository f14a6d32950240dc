"""Build Horovod for TensorFlow in an environment of its own, once: `python -m tools.install_horovod_tensorflow`.

Horovod 0.28.1 needs TensorFlow 2.15.1, and that an older numpy than this project.
"""

import os
import sys
from collections.abc import Mapping

from tools.horovod_build import BUILD_OPTION, check_tools, jobs, opposite
from tools.installer import PROJECT, Log, Stamp, ended, need_free, pins, requirements, say

LOCK = "requirements-horovod-tensorflow.lock"
ENVIRONMENT = PROJECT / ".horovod-tensorflow"
PYTHON = ENVIRONMENT / "bin" / "python"
NEEDED_MB = 2500
DEFAULT_OPTIONS = {
    "HOROVOD_WITH_TENSORFLOW": "1",
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_WITHOUT_MPI": "1",
    "HOROVOD_WITHOUT_PYTORCH": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
}
PROCESSES = 2
ALL_REDUCE = """
import horovod.tensorflow as hvd, tensorflow as tf
hvd.init()
total = float(hvd.allreduce(tf.constant(hvd.rank() + 1.0), op=hvd.Sum))
assert (hvd.size(), total) == (2, 3.0), f"{hvd.size()} processes add up to {total}, not to 3"
"""


def build_options(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a build: those that the user set, and the defaults that they do not contradict."""
    user_options = {name: value for name, value in environment.items() if BUILD_OPTION.fullmatch(name)}
    kept = {name: value for name, value in DEFAULT_OPTIONS.items() if opposite(name) not in user_options}
    return {**kept, **user_options}


def key(options: Mapping[str, str]) -> str:
    """Return what an installation depends on."""
    return f"{(PROJECT / LOCK).read_text(encoding='utf-8')}{sorted(options.items())}"


def install() -> None:
    """Make the environment, compile Horovod there, and check it by a real all-reduce."""
    options, stamp = build_options(os.environ), Stamp(ENVIRONMENT.name + "-ready")
    if PYTHON.exists() and stamp.says(key(options)):
        say(f"horovod-tensorflow: {pins(LOCK)['horovod']} is installed in {ENVIRONMENT} and was checked")
        return
    check_tools(os.environ)
    need_free(PROJECT, NEEDED_MB, "TensorFlow with Horovod")
    log = Log("horovod-tensorflow.log")
    stamp.clear()
    make_environment(log)
    compile_horovod(options, log)
    say(f"horovod-tensorflow 3/3: {PROCESSES} processes communicate a number")
    check(options, log)
    stamp.write(key(options))
    say(f"horovod-tensorflow: the cluster file may say python: {{horovod_tensorflow: {PYTHON}}}")


def make_environment(log: Log) -> None:
    """Make the environment anew, with TensorFlow and with this checkout, which training processes import."""
    say(f"horovod-tensorflow 1/3: installing TensorFlow in {ENVIRONMENT}, 1-10 minutes (log: {log.path})")
    log.run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], f"{ENVIRONMENT} can't be made.")
    pinned = {name: version for name, version in pins(LOCK).items() if name != "horovod"}
    pip("install", *requirements(pinned), log=log, failure="pip could not install TensorFlow; is there a network?")
    editable = ("install", "--no-deps", "--no-build-isolation", "-e", str(PROJECT))
    pip(*editable, log=log, failure="pip could not install this checkout.")


def compile_horovod(options: Mapping[str, str], log: Log) -> None:
    """Compile Horovod for the TensorFlow of the environment, and install it there."""
    say(f"horovod-tensorflow 2/3: compiling {pins(LOCK)['horovod']}, 2-5 minutes on two cores")
    environment = {
        **os.environ,
        "HOROVOD_CMAKE": str(ENVIRONMENT / "bin" / "cmake"),
        **options,
        # Horovod and what it carries along ask for older policies than cmake 4 knows.
        "CMAKE_POLICY_VERSION_MINIMUM": "3.5",
        "MAKEFLAGS": f"-j{jobs()}",
    }
    # A wheel from pip's cache may be one for PyTorch.
    from_source = ("install", "-v", "--no-cache-dir", "--no-binary=horovod", "--no-build-isolation", "--no-deps")
    requirement = f"horovod=={pins(LOCK)['horovod']}"
    pip(*from_source, requirement, log=log, failure="Horovod was not built.", environment=environment)


def check(options: Mapping[str, str], log: Log) -> None:
    """Start processes that add up their numbers; raise InstallationError if the sum is wrong."""
    controller = "--mpi" if options.get("HOROVOD_WITHOUT_GLOO") == "1" else "--gloo"
    launcher = [str(PYTHON), "-m", "horovod.runner.launch", controller, "-np", str(PROCESSES)]
    log.run(
        [*launcher, str(PYTHON), "-c", ALL_REDUCE], "The all-reduce failed.", {**os.environ, "OMP_NUM_THREADS": "1"}
    )


def pip(*arguments: str, log: Log, failure: str, environment: Mapping[str, str] | None = None) -> None:
    """Run pip in the environment."""
    log.run([str(PYTHON), "-m", "pip", "--disable-pip-version-check", *arguments], failure, environment)


if __name__ == "__main__":
    sys.exit(ended(install))
