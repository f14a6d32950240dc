"""Performs one fault for real, and returns its row: how the run ended, what was left, and whether it goes on."""

import re
from pathlib import Path

from tests.command_line import finish
from tools.faults.clusters import MakeScene
from tools.faults.fault import BEFORE, COMPLETED, TRAINING, Fault
from tools.faults.scene import Scene

HEADING = (
    "| fault | cluster | status | silent after | orphans | evidence | continued |",
    "|---|---|---|--:|--:|---|---|",
)
LONGEST_REASON = 90


def performed(fault: Fault, make_scene: MakeScene, folder: Path) -> str:
    """Perform a fault in an empty folder, continue the study, and return the row of the table."""
    folder.mkdir()
    scene = make_scene(folder, fault.framework, fault.timeout_seconds, fault.training_seconds)
    with scene.cleanup:
        if fault.prepare:
            fault.prepare(scene)
        _meet(fault, scene)
        seconds = scene.seconds_to_silence()
        orphans, status, evidence = len(scene.processes()), _outcome(scene), scene.evidence()
        for undo in reversed(scene.undo):
            undo()
        silence = "never" if seconds is None else f"{seconds:.1f} s" if fault.moment == TRAINING else ""
        cells = (fault.title, fault.cluster, status, silence, str(orphans), evidence, _continued(scene))
        return f"| {' | '.join(cells)} |"


def _meet(fault: Fault, scene: Scene) -> None:
    """Let the fault happen at its moment of the study."""
    if fault.moment == BEFORE:
        fault.action(scene)
    scene.start()
    if fault.moment == TRAINING:
        scene.wait_for_training()
        fault.action(scene)
    assert scene.command
    if fault.moment == COMPLETED:
        finish(scene.command)
        fault.action(scene)
        scene.start()


def _outcome(scene: Scene) -> str:
    """Return how the run ended, by its record, and by the command where there is none."""
    assert scene.command
    errors = finish(scene.command).stderr.strip()
    facts = scene.facts()
    if not facts:
        code = scene.command.returncode
        ending = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"no record; {ending}" + (f": {_short(errors)}" if errors else "")
    return f"{facts['status']}" + (f": {_short(facts['reason'])}" if facts["reason"] else "")


def _short(text: str) -> str:
    """Return the first line of a text, shortened, as a table cell contains it; paths begin with the outputs folder."""
    line = re.sub(r"/\S*/outputs\b", "outputs", text.splitlines()[0]).replace("|", "\\|")
    return line if len(line) <= LONGEST_REASON else f"{line[:LONGEST_REASON]} …"


def _continued(scene: Scene) -> str:
    """Return whether the same command completes the study, and what it does about a completed run."""
    before = scene.facts()
    ended = scene.workplace.command("run", busy=scene.slurm is not None)
    facts = scene.facts()
    if ended.returncode or facts.get("status") != "completed":
        return f"no: {_short(ended.stderr or ended.stdout)}"
    if before.get("status") == "completed":
        return "yes, nothing to do" if "nothing to do" in ended.stdout else "yes, measured again"
    return "yes"
