"""Run a command in another pod of the same run, as ssh does, for images without an ssh server.

``serve CERTIFICATE_FILE ADDRESS SECONDS`` runs in every pod except the coordinator's, and waits so long for its first
command. ``run CERTIFICATE_FILE ADDRESS COMMAND…`` is the client: its standard input, output and exit code are those of
the command.

Both speak TLS 1.3, and each must prove to the other that it has the key of the run's certificate, which only the pods
of the run have: nobody else can ask for a command, or read what it prints. The client sends a request and then input,
the server sends output and then the exit code; an empty message ends input or output. When the client goes away, the
command's standard input closes, which ends a node agent; when no command has run for a while, the server ends.
"""

import asyncio
import json
import os
import signal
import socket
import ssl
import sys
import threading
import time
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Coroutine
from contextlib import closing, suppress
from typing import Any

PORT = 29400
#: How long a server waits for a further command after the last has ended.
NEXT_COMMAND_SECONDS = 3.0
POLL_SECONDS = 0.2
CHUNK_BYTES, MOST_MESSAGE_BYTES = 2**16, 2**20
#: Connections that may wait to be accepted: horovodrun opens many at once.
BACKLOG = 64
#: How many connections may be there that have not proved yet that they belong to the run, each of which costs 0.3 MB,
#: and for how long: one that is silent is closed then.
MOST_UNPROVED, PROOF_SECONDS = 256, 5.0
#: How long a client waits until the server, which may have many before it, has proved who it is.
ANSWER_SECONDS = 60.0
#: The exit codes of ssh and of shells: the connection was lost, and the command could not be started.
LOST, NOT_STARTED = 255, 127


def tls(certificate_file: str, protocol: int) -> ssl.SSLContext:
    """Return the TLS context of both ends."""
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # The certificate is of a run, and of no host.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(certificate_file)
    context.load_verify_locations(certificate_file)
    return context


async def send(writer: StreamWriter, message: bytes) -> None:
    """Send a message: its length in four bytes, then its bytes."""
    writer.write(len(message).to_bytes(4, "big") + message)
    await writer.drain()


async def receive(reader: StreamReader) -> bytes:
    """Return the next message; raises EOFError when the other end has gone, and ValueError for one that is too long."""
    size = int.from_bytes(await reader.readexactly(4), "big")
    if size > MOST_MESSAGE_BYTES:
        raise ValueError(f"a message of {size} bytes")
    return await reader.readexactly(size)


async def run(address: str, argv: list[str], certificate_file: str) -> int:
    """Run a command where ``serve`` answers; return its exit code, ``LOST`` when its pod goes away; raises OSError."""
    context = tls(certificate_file, ssl.PROTOCOL_TLS_CLIENT)
    reader, writer = await asyncio.open_connection(address, PORT, ssl=context, ssl_handshake_timeout=ANSWER_SECONDS)
    try:
        await send(writer, json.dumps(argv).encode())
        # A thread: standard input may be a file or a device, for which nothing else can wait.
        threading.Thread(target=_send_input, args=(writer, asyncio.get_running_loop()), daemon=True).start()
        while output := await receive(reader):
            # In a thread too: input goes on while nobody reads the output.
            await asyncio.to_thread(_print, output)
        return int(await receive(reader)) % 256
    except (EOFError, OSError):
        return LOST


def _send_input(writer: StreamWriter, loop: asyncio.AbstractEventLoop) -> None:
    """Send all standard input, and that it has ended."""
    with suppress(OSError, RuntimeError):
        while data := os.read(sys.stdin.fileno(), CHUNK_BYTES):
            asyncio.run_coroutine_threadsafe(send(writer, data), loop).result()
        asyncio.run_coroutine_threadsafe(send(writer, b""), loop).result()


def _print(output: bytes) -> None:
    sys.stdout.buffer.write(output)
    sys.stdout.buffer.flush()


class Server:
    """Runs the commands of clients with the run's key."""

    def __init__(self, certificate_file: str, first_command_seconds: float) -> None:
        self._context = tls(certificate_file, ssl.PROTOCOL_TLS_SERVER)
        self._unproved = asyncio.Semaphore(MOST_UNPROVED)
        self._tasks: set[asyncio.Task[None]] = set()
        self._running = 0
        self._deadline = time.monotonic() + first_command_seconds
        self.has_served = False

    async def serve(self, listener: socket.socket) -> None:
        """Answer until no command has run for a while."""
        self._add_task(self._accept(listener))
        while self._running or time.monotonic() < self._deadline:
            await asyncio.sleep(POLL_SECONDS)

    def _add_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, listener: socket.socket) -> None:
        while True:
            await self._unproved.acquire()
            try:
                connection, _ = await asyncio.get_running_loop().sock_accept(listener)
            except OSError:
                # That connection is gone, or no descriptor is free.
                self._unproved.release()
                await asyncio.sleep(POLL_SECONDS)
                continue
            self._add_task(self._answer(connection))

    async def _answer(self, connection: socket.socket) -> None:
        """Run the command that a client requests; hang up on one that does not belong to the run."""
        with suppress(OSError, EOFError, ValueError):
            try:
                reader, writer = await self._proved(connection)
            finally:
                self._unproved.release()
            with closing(writer):
                argv = json.loads(await receive(reader))
                self.has_served = True
                self._running += 1
                try:
                    await _run_command(argv, reader, writer)
                finally:
                    self._deadline = time.monotonic() + NEXT_COMMAND_SECONDS
                    self._running -= 1

    async def _proved(self, connection: socket.socket) -> tuple[StreamReader, StreamWriter]:
        """Return the streams of a connection once its client has proved that it has the key of the certificate."""
        loop = asyncio.get_running_loop()
        reader = StreamReader(loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol, connection, ssl=self._context, ssl_handshake_timeout=PROOF_SECONDS
        )
        return reader, StreamWriter(transport, protocol, reader, loop)


async def _run_command(argv: list[str], reader: StreamReader, writer: StreamWriter) -> None:
    """Run a command with the input of a client, and send its output and its exit code."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=PIPE, stdout=PIPE, stderr=STDOUT, start_new_session=True
        )
    except OSError as error:
        await send(writer, f"{argv[0]} can't be started: {error}\n".encode())
        await _send_exit_code(writer, NOT_STARTED)
        return
    passing = asyncio.create_task(_pass_input(reader, process))
    assert process.stdout
    while output := await process.stdout.read(CHUNK_BYTES):
        # Read on when the client has gone: a command that can't print does not end.
        with suppress(OSError):
            await send(writer, output)
    code = await process.wait()
    passing.cancel()
    await _send_exit_code(writer, code)


async def _pass_input(reader: StreamReader, process: Process) -> None:
    """Pass on the input of a client; when it ends, or the client has gone, close the command's input."""
    assert process.stdin
    with suppress(OSError, EOFError, ValueError), closing(process.stdin) as stdin:
        while data := await receive(reader):
            stdin.write(data)
            await stdin.drain()


async def _send_exit_code(writer: StreamWriter, code: int) -> None:
    await send(writer, b"")
    await send(writer, str(code).encode())


async def _serve(certificate_file: str, address: str, first_command_seconds: float) -> bool:
    """Serve an address; return whether any command came."""
    server = Server(certificate_file, first_command_seconds)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, PORT), family=family, backlog=BACKLOG) as listener:
        listener.setblocking(False)
        await server.serve(listener)
    return server.has_served


def main() -> None:
    """Serve the address of this pod, or run one command."""
    program, certificate_file, address, *argv = sys.argv[1:]
    if program == "serve":
        # The first process of a container has no signal handlers: without one, it would ignore SIGTERM. Its end is
        # that of the container and its commands, so that there is nothing to wait for.
        signal.signal(signal.SIGTERM, lambda number, _: os._exit(128 + number))
        has_served = asyncio.run(_serve(certificate_file, address, float(argv[0])))
        sys.exit(0 if has_served else "no command came")
    try:
        code = asyncio.run(run(address, argv, certificate_file))
    except OSError as error:
        sys.exit(f"the pod at {address} can't be reached: {error}")
    if code == LOST:
        print(f"the pod at {address} went away, or is not of this run", file=sys.stderr)
    # Not sys.exit: the thread that reads standard input may hold it for ever.
    os._exit(code)


if __name__ == "__main__":
    main()
