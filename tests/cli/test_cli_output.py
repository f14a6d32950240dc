"""What commands print for programs and terminals: JSON, colour, completion; and how they wait for a lock."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from dlperf_study.__main__ import main
from dlperf_study.cli import command_line, measuring
from dlperf_study.cli.parser import command_parser
from dlperf_study.core.errors import HeldError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.machines.supervision.locks import lock
from tests.programs.studies import STUDY as PROGRAM_STUDY
from tests.programs.studies import write_study

pytestmark = pytest.mark.timeout(60)
WRONG = "GPUs,Images/sec,Speed-up\n1,100,1.00\n4,370,3.90\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.write_text(WRONG)
    return path


def printed_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    main([*arguments, "--json"])
    content: dict[str, object] = json.loads(capsys.readouterr().out)
    return content


def test_the_audit_as_json(table, capsys):
    content = printed_json(capsys, "audit", str(table))
    assert [column["read_as"] for column in content["columns"]] == ["world_size", "throughput", "speedup"]
    [diagnostic] = content["diagnostics"]
    assert (diagnostic["severity"], diagnostic["check"]) == ("error", "ratios")
    assert diagnostic["cells"][0] == "table.csv/row 2/speedup"


@pytest.mark.parametrize(("options", "code"), [([], 1), (["--exit-zero"], 0)])
def test_errors_are_the_exit_code_unless_declined(table, options, code):
    assert main(["audit", str(table), *options]) == code
    table.write_text(WRONG.replace("3.90", "3.70"))
    assert main(["audit", str(table), *options]) == 0


def test_a_separator_and_a_decimal_sign_are_declared(tmp_path, capsys):
    (tmp_path / "table.csv").write_text("GPUs;Images/sec;Speed-up\n1;100,0;1,00\n4;370,0;3,90\n")
    main(["audit", str(tmp_path / "table.csv"), "--separator", ";", "--decimal", ","])
    assert "= 3.7, printed 3.90" in capsys.readouterr().out


def test_the_plan_as_json(place, capsys):
    content = printed_json(capsys, "plan", str(place.study_file), "--cluster", str(place.cluster_file))
    planned = content["configurations"]
    configuration_ids = {configuration["configuration_id"] for configuration in planned}
    assert content["study"] == "tiny"
    assert {configuration["baseline"] for configuration in planned} <= configuration_ids
    assert {(configuration["repetitions"], configuration["done"]) for configuration in planned} == {(1, 0)}
    assert content["not_counted"] == []


@pytest.mark.parametrize(
    ("environment", "has_colour"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_a_terminal_shows_colour_unless_it_is_declined(table, environment, has_colour):
    controller, terminal = pty.openpty()
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    command = [sys.executable, "-m", "dlperf_study", "audit", str(table)]
    process = subprocess.Popen(command, stdout=terminal, env={**plain, "TERM": "xterm", **environment})
    os.close(terminal)
    printed = b""
    while b"possible explanations" not in printed:
        printed += os.read(controller, 65536)
    process.wait()
    os.close(controller)
    assert (b"\x1b[" in printed) == has_colour
    assert b"3.7, printed 3.90" in printed


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        (["aud"], {"audit"}),
        (["plan", "quicks"], {"quickstart"}),
        (["audit", "--exit"], {"--exit-zero"}),
        (["completion", "z"], {"zsh"}),
        (["measure", "--sweep", "n"], {"nodes="}),
        (["measure", "--launch", "per-r"], {"per-rank"}),
        (["meas"], {"measure"}),
        (["measure", "--sweep", "wi=1,2", "--", "torchrun", "'--a={no'"], {"--a={nodes}", "--a={node}"}),
        (
            ["measure", "--sweep", "width=1,2", "--", "x", "'{host_0}:{p'"],
            {"{host_0}:{p" + end for end in ("ort_0}", "rocesses}", "ython}")},
        ),
        (["measure", "--sweep", "width=1,2", "--set", "wide=1", "--", "x", "'{wi'"], {"{width}", "{wide}"}),
        (["measure", "--sweep", "width", "=", "1,2", "--", "x", "'{wi'"], {"{width}"}),
    ],
)
def test_a_shell_completes_what_is_typed(typed, completed, tmp_path, capsys):
    assert main(["completion", "bash"]) == 0
    words = " ".join(["dlperf-study", *typed])
    lines = [capsys.readouterr().out, f"COMP_WORDS=({words})", f"COMP_CWORD={len(typed)}"]
    script = "\n".join([*lines, "_dlperf_study", 'echo "${COMPREPLY[@]}"'])
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert {*done.stdout.split()} == completed


def test_an_interrupted_command_ends_as_a_shell_expects(monkeypatch, capsys):
    """With 128 and the number of SIGINT."""

    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "interrupt_once", interrupted)
    assert main(["completion", "bash"]) == 128 + signal.SIGINT
    assert capsys.readouterr().err == "interrupted. The same command starts over.\n"
    for options in ([], ["--rerun"]):
        assert main(["run", "quickstart", *options]) == 128 + signal.SIGINT
        # With it the same command puts aside what it has measured.
        assert ("without --rerun" in capsys.readouterr().err) == bool(options)


def test_a_command_that_was_interrupted_while_it_made_a_class_ends_with_the_same_code():
    """A dataclass is made by `exec`, after whose interrupt Python ends itself by a signal."""
    program = """
import sys
from dlperf_study.cli import command_line

def interrupted():
    exec("raise KeyboardInterrupt")

command_line.interrupt_once = interrupted
sys.exit(command_line.do(["completion", "bash"]))
"""
    assert subprocess.run([sys.executable, "-c", program], stderr=subprocess.DEVNULL).returncode == 130


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [(("a",), "a"), (("a", "a"), "a"), (("a", "b"), "a; `plan` lists the other reasons")],
)
def test_where_nothing_can_run_the_first_reason_is_said_and_where_others_are(reasons, expected):
    entries = [SimpleNamespace(unsupported=reason) for reason in reasons]
    assert measuring._why(SimpleNamespace(unsupported=entries)) == expected


def test_every_command_describes_itself_without_markup(capsys):
    with pytest.raises(SystemExit):
        main(["audit", "--help"])
    text = capsys.readouterr().out
    assert "Check a results table" in text
    assert "`" not in text


def test_an_error_says_where_it_comes_from_where_wanted(tmp_path, capsys):
    for options, has_traceback in (([], False), (["--traceback"], True)):
        (tmp_path / "table.csv").write_text("a,b\n1,2\n")
        assert main(["audit", str(tmp_path / "table.csv"), *options]) == 1
        assert ("Traceback" in capsys.readouterr().err) == has_traceback


def test_a_command_waits_for_a_lock_and_says_who_holds_it(capsys, monkeypatch, tmp_path):
    """The lock is held by this process, in a second thread, until the command has tried once, and a while longer."""
    tried = threading.Event()
    tries = []

    def command(options: object) -> int:
        tries.append(options)
        try:
            with lock(tmp_path / "lock", "measuring", "would spoil both"):
                return 0
        except HeldError:
            tried.set()
            raise

    def hold() -> None:
        with lock(tmp_path / "lock", "reading a study", "would spoil both"):
            held.set()
            tried.wait(30)
            time.sleep(0.5)

    held = threading.Event()
    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(30)
    monkeypatch.setattr(command_line, "WAIT_SECONDS", 0.05)
    options = command_parser().parse_args(["report", "quickstart", "--wait"])
    assert command_line._until_free(command, options) == 0
    holder.join()
    assert capsys.readouterr().err.count(f"waiting: process {os.getpid()} is reading") == 1
    # What a command prints before it meets the lock is not printed at every look at the lock.
    assert len(tries) == 2


def test_a_folder_of_outputs_is_a_name_and_is_listed(place, capsys):
    folder = StudyPaths.of("tiny-quick").folder
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text("{}")
    assert main(["report", "tiny-quick", "--data-only"]) == 1
    assert "tiny-quick/plan.json" in capsys.readouterr().err
    assert main(["report", "tiny-quik", "--data-only"]) == 1
    assert f"{place.outputs} has tiny-quick" in capsys.readouterr().err


def test_no_name_controls_the_terminal(tmp_path, capsys):
    path = write_study(tmp_path, PROGRAM_STUDY.replace("width: [1, 2]", 'width: ["\\e]0;pwn\\a\\e[2J", "b\\u202e"]'))
    assert main(["plan", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "\\x1b]0;pwn\\x07\\x1b[2J" in printed
    assert not {"\x1b", "\x07", "\u202e"} & set(printed)
    [table_line] = [line for line in printed.splitlines() if line.startswith("1 ")]
    [heading] = [line for line in printed.splitlines() if line.startswith("# ")]
    assert table_line.index("  1  ") + 2 == heading.index("devices_per_node"), "columns are aligned"
    main(["plan", str(path), "--json"])
    content = capsys.readouterr().out
    assert "\u202e" not in content
    assert json.loads(content)["study"] == "toy"


@pytest.mark.parametrize("variables", [{"LC_ALL": "C", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "ascii"}])
def test_a_stream_that_has_no_character_shows_its_escape(tmp_path, variables):
    path = write_study(tmp_path, PROGRAM_STUDY.replace("title: A program", "title: Größe"))
    command = [sys.executable, "-m", "dlperf_study", "plan", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables})
    assert (done.returncode, done.stderr) == (0, "")
    assert "Gr\\xf6\\xdfe" in done.stdout


@pytest.mark.parametrize(("limit", "printed"), [("-n 200", "administrator to raise it\n"), ("-Sn 40", "")])
def test_a_low_limit_of_open_files_is_raised_or_named(limit, printed, tmp_path):
    command = f'ulimit {limit}; cd {tmp_path}; "{sys.executable}" -m dlperf_study plan quickstart'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stderr.endswith(printed)) == (int(bool(printed)), True), done.stderr
