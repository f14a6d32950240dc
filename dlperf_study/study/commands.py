"""What other programs of this machine say. Standard library only."""

import subprocess

COMMAND_SECONDS = 30


def command_output(*argv: str) -> str:
    """Return what a command prints, or nothing when it can't be run, fails, or takes too long."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=COMMAND_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
