"""The command line: ``python -m dlperf_study``."""

import argparse
import os
import sys
import time
import traceback

from dlperf_study.commands.machine import selftest
from dlperf_study.commands.measuring import run, study
from dlperf_study.commands.output import STANDARD_OUTPUT, print_aside, print_error
from dlperf_study.commands.parser import Command, command_parser
from dlperf_study.errors import DlperfStudyError, HeldError
from dlperf_study.interruption import interrupt_once

INTERRUPTED = 130
#: How often a command that waits for a lock tries again.
WAIT_SECONDS = 2.0
#: The message for commands that continue where they were interrupted.
_CONTINUATION: dict[Command, str] = dict.fromkeys(
    (study, run, selftest), "; no training process is left. The same command continues."
)


def main(arguments: list[str] | None = None) -> int:
    """Do one command; return the exit code: 0 done, 1 an error or a failed run, 130 interrupted."""
    options = command_parser().parse_args(arguments)
    command: Command = options.command
    try:
        interrupt_once()
        return _until_free(command, options)
    except DlperfStudyError as error:
        if options.verbose:
            traceback.print_exc()
        return print_error(str(error))
    except OSError as error:
        if error.filename == str(STANDARD_OUTPUT):
            # Otherwise Python would try to write the rest when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return print_error(f"{error.filename or 'a file'}: {error.strerror or error}")
    except KeyboardInterrupt:
        print(f"interrupted{_CONTINUATION.get(command, '. The same command starts over.')}", file=sys.stderr)
        return INTERRUPTED


def _until_free(command: Command, options: argparse.Namespace) -> int:
    """Do a command; with ``--wait`` again and again while another process holds a lock, and say once which."""
    reported = ""
    while True:
        try:
            return command(options)
        except HeldError as error:
            if not getattr(options, "wait", False):
                raise
            if str(error) != reported:
                print_aside(f"waiting: {error}")
            reported = str(error)
        time.sleep(WAIT_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
