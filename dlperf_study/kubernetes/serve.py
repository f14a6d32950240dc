"""Run commands for other pods of the same run: what an ssh server is, for images that have none.

``python -m dlperf_study.kubernetes.serve TOKEN_FILE ADDRESS`` answers in every pod but the coordinator's.
Whoever asks must know the run's secret token. When who asked goes away, the command's standard input closes, which
is what guards live by; when nobody is connected any more, this process ends.
"""

import hmac
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import IO

from dlperf_study.kubernetes import frames

PORT = 29400
#: How long a pod serves nobody before it ends: until the first command, and after the last.
FIRST_SECONDS, LAST_SECONDS = 3600.0, 3.0
ACCEPT_SECONDS = 0.2
CHUNK_BYTES = 2**16


def serve(listener: socket.socket, token: str) -> bool:
    """Run what those who know the token ask for, until none of them is left; return whether anybody asked."""
    asked = threading.Event()
    running: list[threading.Thread] = []
    last_seen = time.monotonic()
    listener.settimeout(ACCEPT_SECONDS)
    while running or time.monotonic() - last_seen < (LAST_SECONDS if asked.is_set() else FIRST_SECONDS):
        with suppress(TimeoutError):
            running.append(_start(listener.accept()[0], token, asked))
        if running and asked.is_set():
            last_seen = time.monotonic()
        running = [thread for thread in running if thread.is_alive()]
    return asked.is_set()


def _start(connection: socket.socket, token: str, asked: threading.Event) -> threading.Thread:
    thread = threading.Thread(target=_answer, args=(connection, token, asked), daemon=True)
    thread.start()
    return thread


def _answer(connection: socket.socket, token: str, asked: threading.Event) -> None:
    """Run the command that one connection asks for; hang up on whoever doesn't know the token."""
    connection.settimeout(None)
    with connection, connection.makefile("rb") as question, suppress(OSError, ValueError, KeyError):
        order = json.loads(question.readline())
        if hmac.compare_digest(str(order["token"]).encode(), token.encode()):
            asked.set()
            connection.sendall(frames.end(_run(order["argv"], connection, question)))


def _run(argv: list[str], connection: socket.socket, question: IO[bytes]) -> int:
    """Run a command between the two ends of a connection; return its exit code."""
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
    except OSError as error:
        connection.sendall(frames.piece(f"{argv[0]} can't be started: {error}\n".encode()))
        return 127
    assert process.stdin
    assert process.stdout
    threading.Thread(target=_feed, args=(question, process.stdin), daemon=True).start()
    with suppress(OSError):
        while data := os.read(process.stdout.fileno(), CHUNK_BYTES):
            connection.sendall(frames.piece(data))
    return process.wait()


def _feed(question: IO[bytes], stdin: IO[bytes]) -> None:
    """Pass on what the asker sends; that he has gone, or has no more to say, closes the command's input."""
    with suppress(OSError, ValueError), stdin:
        while data := question.read1(CHUNK_BYTES):  # type: ignore[attr-defined]
            stdin.write(data)
            stdin.flush()


def _terminate(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def main() -> None:
    """Serve the pod's address until the run is over; exit with 1 when nobody ever came."""
    token_file, address = sys.argv[1:]
    # The first process of a container has no signal handlers: without one, it would take no notice of SIGTERM.
    signal.signal(signal.SIGTERM, _terminate)
    with socket.create_server((address, PORT)) as listener:
        sys.exit(0 if serve(listener, Path(token_file).read_text()) else 1)


if __name__ == "__main__":
    main()
