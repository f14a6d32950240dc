"""Run a command in another pod of the same run, as if it ran here: what ssh is, for images that have none.

``python -m dlperf_study.kubernetes.reach TOKEN_FILE ADDRESS WORDS…``: standard input goes there; output
and exit code come back. ``serve`` is the other end.
"""

import json
import os
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path

from dlperf_study.kubernetes import frames
from dlperf_study.kubernetes.serve import CHUNK_BYTES, PORT

CONNECT_SECONDS = 30.0
LOST = 255


def reach(address: str, words: list[str], token: str) -> int:
    """Run a command where ``serve`` answers; return its exit code, 255 when its pod goes away.

    Raises OSError when nobody answers there.
    """
    with socket.create_connection((address, PORT), timeout=CONNECT_SECONDS) as connection:
        connection.settimeout(None)
        connection.sendall(json.dumps({"token": token, "argv": words}).encode() + b"\n")
        threading.Thread(target=_feed, args=(sys.stdin.fileno(), connection), daemon=True).start()
        with connection.makefile("rb") as answers:
            code = frames.receive(answers, _write)
    return LOST if code is None else code % 256


def _feed(descriptor: int, connection: socket.socket) -> None:
    with suppress(OSError):
        while data := os.read(descriptor, CHUNK_BYTES):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def main() -> None:
    """Run the command; say on standard error why, when it can't be."""
    token_file, address, *words = sys.argv[1:]
    try:
        code = reach(address, words, Path(token_file).read_text())
    except OSError as error:
        sys.exit(f"the pod at {address} can't be reached: {error}")
    if code == LOST:
        print(f"the pod at {address} went away, or does not know the token", file=sys.stderr)
    # Not sys.exit: the thread that reads standard input may hold it for ever.
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
