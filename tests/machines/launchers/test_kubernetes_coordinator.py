"""What the first pod of a run checks before anything is started, and how it runs commands in the others."""

import json
import re
import select
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from dlperf_study.machines.cluster.software import software
from dlperf_study.machines.kubernetes.coordinator_pod import RunRequest, coordinate_pods, write_archive
from dlperf_study.machines.kubernetes.kubernetes_run import run_certificate
from dlperf_study.machines.kubernetes.remote_exec import BACKLOG, MOST_UNPROVED, NOT_STARTED, PORT, PROOF_SECONDS
from dlperf_study.machines.node_agent.run_folder import encoded
from dlperf_study.training.questions import packages, packages_of_libraries
from tests.command_line import wait_for
from tests.machines import submissions

#: Of this machine, and of no other test.
ADDRESS, OTHER_ADDRESS = "127.0.0.77", "127.0.0.78"


def reason(code: str = "", **libraries: str) -> str:
    """Return why a run ends that was planned with these libraries; its pods never answer."""
    submission = submissions.submission(
        "kubernetes", "/runs/1", (), 0, libraries=packages_of_libraries(), packages=packages(), code=code
    )
    request = RunRequest(submission, ("nobody.invalid",), True, libraries, 1.0, 0.0)
    return coordinate_pods(request, "127.0.0.1").reason


@pytest.mark.parametrize("package", ["paddlepaddle", "paddlepaddle-gpu"])
def test_an_image_has_the_library_that_the_study_was_planned_with(package):
    here = software(packages())["paddlepaddle"]
    assert reason(**{package: "2.9.9"}) == f"the image has paddle {here}, but the study was planned with 2.9.9"
    assert reason(**{package: here}) == "nobody.invalid: no answer within 0 s"


def test_an_image_has_the_code_of_the_driver():
    assert reason("another").startswith("the image has other benchmark code than the controller")


def test_a_pod_has_the_files_that_travel_with_a_run(tmp_path):
    packed, pod = tmp_path / "files.tar.gz", tmp_path / "pod"
    packed.write_bytes(bytes(range(256)))
    pod.mkdir()
    submission = submissions.submission("kubernetes", "/runs/1", (), 0, archive=str(packed))
    request = RunRequest(submission, (), True, {}, 1.0, 0.0, archive=encoded(packed))
    received = RunRequest.from_json(request.as_json(), {})
    assert Path(write_archive(received.archive, pod)).read_bytes() == packed.read_bytes()
    assert write_archive("", pod) == ""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Return the files of the certificates of two runs."""
    files = [tmp_path_factory.mktemp("secret") / f"run-{number}.pem" for number in (1, 2)]
    for file in files:
        file.write_text(run_certificate())
    return files


def remote_exec(program: str, certificate: Path, address: str, *command: str) -> list[str]:
    module = "dlperf_study.machines.kubernetes.remote_exec"
    return [sys.executable, "-m", module, program, str(certificate), address, *command]


@contextmanager
def serving(certificate: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Serve ``ADDRESS`` until the last command."""
    with subprocess.Popen(remote_exec("serve", certificate, ADDRESS, "600")) as server:
        wait_for(lambda: run(certificate, "true") == ("", "", 0), "the server to answer")
        yield server


def run(certificate: Path, *command: str, text: str = "", address: str = ADDRESS) -> tuple[str, str, int]:
    """Return what a command and its client print, and its exit code; ``text`` is its input."""
    client = subprocess.run(
        remote_exec("run", certificate, address, *command), input=text, capture_output=True, text=True
    )
    return client.stdout, client.stderr, client.returncode


def test_a_command_runs_in_another_pod_of_the_same_run_only(certificates):
    ours, theirs = certificates
    with serving(ours) as server:
        assert run(ours, "sh", "-c", "cat; exit 3", text="a line") == ("a line", "", 3)
        much = "x" * 3_000_000
        assert run(ours, "cat", text=much) == (much, "", 0)
        assert run(ours, "/no/such/program")[2] == NOT_STARTED
        output, message, code = run(theirs, "echo", "reached")
        assert (output, code) == ("", 1)
        assert "certificate verify failed" in message
    assert server.returncode == 0, "it ends a moment after its last command"


def test_a_pod_waits_for_its_first_command_as_long_as_others_may_take_to_start(certificates):
    ended = subprocess.run(remote_exec("serve", certificates[0], ADDRESS, "0"), capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (1, "no command came\n")


def test_a_client_that_trusts_the_pod_and_has_not_its_key_is_refused(certificates):
    ours, theirs = certificates
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(ours)
    request = json.dumps(["echo", "reached"]).encode()
    for own in (None, theirs):
        if own:
            context.load_cert_chain(own)
        with serving(ours), socket.create_connection((ADDRESS, PORT)) as plain, context.wrap_socket(plain) as client:
            client.sendall(len(request).to_bytes(4, "big") + request)
            assert answer_to(client) == b""


def answer_to(client: ssl.SSLSocket) -> bytes:
    """Return what a client reads; nothing where it was refused, which TLS 1.3 tells it then."""
    try:
        return client.recv(100)
    except OSError:
        return b""


def test_what_travels_between_pods_can_not_be_read(certificates):
    seen = bytearray()
    with serving(certificates[0]), socket.create_server((OTHER_ADDRESS, PORT)) as listener:
        threading.Thread(target=relay, args=(listener, seen), daemon=True).start()
        command = ("sh", "-c", "cat; echo a-printed-secret")
        printed, _, code = run(certificates[0], *command, text="a-sent-secret ", address=OTHER_ADDRESS)
    assert (printed, code) == ("a-sent-secret a-printed-secret\n", 0)
    assert len(seen) > 1000
    assert not re.search(b"secret|cat", seen)


def relay(listener: socket.socket, seen: bytearray) -> None:
    """Pass on one connection to the server, both ways, and keep what was seen."""
    client, _ = listener.accept()
    with client, socket.create_connection((ADDRESS, PORT)) as server:
        other = {client: server, server: client}
        while True:
            for end in select.select(list(other), [], [])[0]:
                data = end.recv(2**16)
                if not data:
                    return
                seen.extend(data)
                other[end].sendall(data)


def test_silent_clients_delay_a_command_and_do_not_fill_the_memory(certificates):
    with serving(certificates[0]) as server, ExitStack() as flood:
        process = psutil.Process(server.pid)
        before = process.memory_info().rss
        command = remote_exec("run", certificates[0], ADDRESS, "cat")
        flood.callback(flood.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE)).kill)
        for _ in range(MOST_UNPROVED + BACKLOG // 2):
            flood.enter_context(socket.create_connection((ADDRESS, PORT)))
        begin = time.monotonic()
        assert run(certificates[0], "echo", "reached") == ("reached\n", "", 0)
        assert time.monotonic() - begin < 4 * PROOF_SECONDS
        assert process.memory_info().rss - before < MOST_UNPROVED * 2**20


def test_a_command_that_prints_after_its_client_has_gone_ends(certificates):
    """As a node agent does, which then ends its processes and sends what they wrote."""
    with serving(certificates[0]) as server:
        command = remote_exec("run", certificates[0], ADDRESS, "sh", "-c", "echo begun; cat; head -c 3000000 /dev/zero")
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
            assert client.stdout
            assert client.stdout.readline() == b"begun\n"
            client.kill()
        assert server.wait(30) == 0
