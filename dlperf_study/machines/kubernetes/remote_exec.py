"""Run a command in another pod of the same run, as ssh does, for images without an ssh server.

``serve TOKEN_FILE ADDRESS`` runs in every pod except the coordinator's. ``run TOKEN_FILE ADDRESS COMMAND…`` is the
client: its standard input, output and exit code are those of the command. It must know the secret token of the run.

Both exchange messages of ``multiprocessing.connection``: the client sends a request and then input, the server sends
output and then the exit code; an empty message ends input or output. When the client goes away, the command's standard
input closes, which ends a guard; when no command has run for a while, the server ends.
"""

import hmac
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import IO

PORT = 29400
#: How long a server waits for its first command, and for a further one after the last has ended.
FIRST_COMMAND_SECONDS, NEXT_COMMAND_SECONDS = 3600.0, 3.0
POLL_SECONDS = 0.2
CHUNK_BYTES, MOST_REQUEST_BYTES = 2**16, 2**20
#: Connections that may wait to be accepted: horovodrun opens many at once.
BACKLOG = 64
#: The exit codes of ssh and of shells: the connection was lost, and the command could not be started.
LOST, NOT_STARTED = 255, 127


def run(address: str, argv: list[str], token: str) -> int:
    """Run a command where ``serve`` answers; return its exit code, ``LOST`` when its pod goes away.

    Raises OSError when nothing answers at the address.
    """
    connection = Client((address, PORT))

    def send_input() -> None:
        with suppress(OSError):
            while data := os.read(sys.stdin.fileno(), CHUNK_BYTES):
                connection.send_bytes(data)
            connection.send_bytes(b"")

    try:
        connection.send_bytes(json.dumps({"token": token, "argv": argv}).encode())
        threading.Thread(target=send_input, daemon=True).start()
        while output := connection.recv_bytes():
            sys.stdout.buffer.write(output)
            sys.stdout.buffer.flush()
        return int(connection.recv_bytes()) % 256
    except (EOFError, ConnectionError):
        return LOST


class Server:
    """Runs the commands of clients that know the token."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._running: set[Connection] = set()
        self._deadline = time.monotonic() + FIRST_COMMAND_SECONDS
        self.has_served = False

    def serve(self, listener: Listener) -> None:
        """Answer until no command has run for a while."""
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        while self._running or time.monotonic() < self._deadline:
            time.sleep(POLL_SECONDS)

    def _accept(self, listener: Listener) -> None:
        while True:
            threading.Thread(target=self._answer, args=(listener.accept(),), daemon=True).start()

    def _answer(self, connection: Connection) -> None:
        """Run the command that a client requests; hang up on one that does not know the token."""
        with connection, suppress(OSError, EOFError, ValueError, KeyError):
            request = json.loads(connection.recv_bytes(MOST_REQUEST_BYTES))
            if not hmac.compare_digest(str(request["token"]).encode(), self._token.encode()):
                return
            self.has_served = True
            self._running.add(connection)
            try:
                _run_command(request["argv"], connection)
            finally:
                self._deadline = time.monotonic() + NEXT_COMMAND_SECONDS
                self._running.discard(connection)


def _run_command(argv: list[str], connection: Connection) -> None:
    """Run a command with the input of a client, and send its output and its exit code."""
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, start_new_session=True)
    except OSError as error:
        connection.send_bytes(f"{argv[0]} can't be started: {error}\n".encode())
        _send_exit_code(connection, NOT_STARTED)
        return
    assert process.stdin
    assert process.stdout
    threading.Thread(target=_receive_input, args=(os.dup(connection.fileno()), process.stdin), daemon=True).start()
    with suppress(OSError):
        while output := os.read(process.stdout.fileno(), CHUNK_BYTES):
            connection.send_bytes(output)
    _send_exit_code(connection, process.wait())


def _receive_input(descriptor: int, stdin: IO[bytes]) -> None:
    """Pass on the input of a client; when it ends, or the client has gone, close the command's input."""
    # A connection of its own: the other one may be closed, and its descriptor used again, while this one reads.
    with Connection(descriptor) as connection, suppress(OSError, EOFError), stdin:
        while data := connection.recv_bytes():
            stdin.write(data)
            stdin.flush()


def _send_exit_code(connection: Connection, code: int) -> None:
    connection.send_bytes(b"")
    connection.send_bytes(str(code).encode())


def main() -> None:
    """Serve the address of this pod, or run one command at the address of another."""
    program, token_file, address, *argv = sys.argv[1:]
    token = Path(token_file).read_text()
    if program == "serve":
        # The first process of a container has no signal handlers: without one, it would ignore SIGTERM.
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        server = Server(token)
        with Listener((address, PORT), backlog=BACKLOG) as listener:
            server.serve(listener)
        sys.exit(0 if server.has_served else "no command came")
    try:
        code = run(address, argv, token)
    except OSError as error:
        sys.exit(f"the pod at {address} can't be reached: {error}")
    if code == LOST:
        print(f"the pod at {address} went away, or does not know the token", file=sys.stderr)
    # Not sys.exit: the thread that reads standard input may hold it for ever.
    os._exit(code)


if __name__ == "__main__":
    main()
