"""The command line: ``python -m dlperf_study``, or ``dlperf-study``."""

import sys


def main(arguments: list[str] | None = None) -> int:
    """Do one command; return the exit code: 0 done, 1 an error or a failed run, 2 a wrong call, 130 interrupted."""
    import signal

    # Nothing has begun: while the commands are imported, Ctrl-C ends this process without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from dlperf_study.cli.command_line import do

    return do(arguments)


if __name__ == "__main__":
    # `python -m` puts the current folder first, which may hold downloaded files, such as a signal.py.
    if not sys.flags.safe_path and __file__ != f"{sys.path[0]}/dlperf_study/__main__.py":
        del sys.path[0]
    sys.exit(main())
