"""The command line: ``python -m dlperf_study``."""

import os
import sys

from dlperf_study.commands.machine import selftest
from dlperf_study.commands.measuring import run, study
from dlperf_study.commands.output import STANDARD_OUTPUT, print_error
from dlperf_study.commands.parser import Command, command_parser
from dlperf_study.errors import DlperfStudyError
from dlperf_study.interruption import interrupt_once

INTERRUPTED = 130
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
        return command(options)
    except DlperfStudyError as error:
        return print_error(str(error))
    except OSError as error:
        if error.filename == str(STANDARD_OUTPUT):
            # Otherwise Python would try to write the rest when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return print_error(f"{error.filename or 'a file'}: {error.strerror or error}")
    except KeyboardInterrupt:
        print(f"interrupted{_CONTINUATION.get(command, '. The same command starts over.')}", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
