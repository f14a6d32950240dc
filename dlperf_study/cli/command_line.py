"""Run one command: waiting, errors and interrupts."""

import argparse
import errno
import os
import resource
import sys
import time
import traceback

from dlperf_study.cli.measuring import run, selftest
from dlperf_study.cli.output import STANDARD_OUTPUT, lines_may_be_lost, print_aside, print_error
from dlperf_study.cli.own_program import measure
from dlperf_study.cli.parser import Command, command_parser, parsed
from dlperf_study.cli.reading import ingest, report
from dlperf_study.core.errors import DlperfStudyError, HeldError
from dlperf_study.core.paths import OUTPUTS_VARIABLE, outputs_folder
from dlperf_study.core.signals import interrupt_once
from dlperf_study.core.terminal import mend_streams, silence
from dlperf_study.core.user_commands import missing_package

_PACKAGE = __name__.partition(".")[0]
INTERRUPTED = 130
#: The exit code of a command line without a command: that of argparse for wrong ones.
NO_COMMAND = 2
WAIT_SECONDS = 2.0
#: Notebooks with their kernels, ranks and logs have about 100 files open; libraries open theirs too.
MIN_OPEN_FILES = 256
_REMEDIES = {errno.EFBIG: "raise the limit of file sizes: ulimit -f", errno.EDQUOT: "free some of your disk quota"}
#: The commands that continue where they were interrupted.
_CONTINUED: tuple[Command, ...] = (run, measure, selftest)
#: The commands that go on where nobody reads what they print: their results are files.
_WITH_FILES: tuple[Command, ...] = (*_CONTINUED, report, ingest)


def do(arguments: list[str] | None) -> int:
    """Do one command; return its exit code: 0, 1, 2 or 130."""
    mend_streams()
    if obstacle := _obstacle_here():
        print_aside(f"error: {obstacle}")
        return 1
    if not (sys.argv[1:] if arguments is None else arguments):
        print_aside(command_parser().format_help())
        return NO_COMMAND
    options = parsed(arguments)
    command: Command = options.command
    if output := getattr(options, "output", None):
        os.environ[OUTPUTS_VARIABLE] = str(output.expanduser().resolve())
    try:
        interrupt_once()
        with lines_may_be_lost(command in _WITH_FILES):
            return _until_free(command, options)
    except DlperfStudyError as error:
        if options.traceback:
            traceback.print_exc()
        return print_error(str(error))
    except ModuleNotFoundError as error:
        if options.traceback or not error.name or error.name.partition(".")[0] == _PACKAGE:
            raise
        return print_error(missing_package(error.name))
    except OSError as error:
        return _file_error(error)
    except RuntimeError as error:
        if not _is_loop(error):
            raise
        return print_error(str(error))
    except KeyboardInterrupt:
        # If it was raised inside `exec`, which makes dataclasses, Python would end itself by SIGINT at its exit.
        exec("")
        print_aside(f"interrupted{_continuation(options)}")
        return INTERRUPTED


def _file_error(error: OSError) -> int:
    """Print an error of the operating system; return the exit code."""
    if error.filename == str(STANDARD_OUTPUT):
        # Otherwise Python would try to write the rest when it exits.
        silence(sys.stdout)
        if error.errno == errno.EPIPE:
            # The reader, such as head, has read enough.
            return 0
    reason = "; ".join(filter(None, [str(error.strerror or error), _REMEDIES.get(error.errno or 0)]))
    if error.filename:
        return print_error(f"{error.filename}: {reason}")
    return print_error(reason)


def _continuation(options: argparse.Namespace) -> str:
    if options.command not in _CONTINUED:
        return ". The same command starts over."
    # With --rerun it would put aside what it has measured, and begin anew.
    rerun = ""
    if getattr(options, "rerun", False):
        rerun = " without --rerun (RERUN=1 with make)"
    # psutil takes a while to import, and only this needs it.
    from dlperf_study.machines.supervision.processes import orphan_names

    left = ", ".join(orphan_names())
    if left:
        return f"; still running on this machine: {left}. The same command{rerun} ends them and continues."
    return f"; no training process is left on this machine. The same command{rerun} continues."


def _obstacle_here() -> str:
    try:
        os.getcwd()
        outputs_folder()
    except FileNotFoundError:
        return "the folder in which this command was started is gone; go to another one"
    except RuntimeError as error:
        if not _is_loop(error):
            raise
        return f"{OUTPUTS_VARIABLE} or outputs/: {error}"
    return _open_files_obstacle()


def _open_files_obstacle() -> str:
    """Raise a low limit of open files; return why that is impossible, or empty."""
    limit, highest = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY or limit >= MIN_OPEN_FILES:
        return ""
    if highest != resource.RLIM_INFINITY and highest < MIN_OPEN_FILES:
        return (
            f"the hard limit of open files is {highest} (ulimit -Hn), and {MIN_OPEN_FILES} are needed; start a new "
            "login session, or ask your administrator to raise it"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (MIN_OPEN_FILES, highest))
    return ""


def _is_loop(error: RuntimeError) -> bool:
    return str(error).startswith("Symlink loop")


def _until_free(command: Command, options: argparse.Namespace) -> int:
    """Do a command; with ``--wait`` again when the lock is free."""
    while True:
        try:
            return command(options)
        except HeldError as error:
            if not getattr(options, "wait", False):
                raise
            # With the launchers, which take a while to import.
            from dlperf_study.machines.supervision.locks import is_held

            print_aside(f"waiting: {error.reason}")
            time.sleep(WAIT_SECONDS)
            while is_held(error.path):
                time.sleep(WAIT_SECONDS)
