"""Commands that begin with the user's training script: init, measure."""

import argparse
import os
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from dlperf_study.cli.measuring import run_study_file
from dlperf_study.cli.output import print_aside, print_line, progress_printer
from dlperf_study.core.errors import DlperfStudyError, StudyFileError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.resources import FOLDERS, PARAMS
from dlperf_study.core.wording import closest
from dlperf_study.core.writing import naming, replacing, write_atomically
from dlperf_study.study.configuration import SCALE, study_parameters
from dlperf_study.study.new_study import MEASUREMENT, NewStudy
from dlperf_study.study.parameter import Scalar
from dlperf_study.study.program import PER_RANK, Program
from dlperf_study.study.strict_yaml import parse_mapping
from dlperf_study.study.study_values import is_of_one_kind

IGNORED = "outputs/"
T = TypeVar("T")


def init(options: argparse.Namespace) -> int:
    """Write a commented study file for the training script in this folder, to edit."""
    from dlperf_study.programs.guesses import guess_program

    name, folder = _study_name(options.name), Path.cwd()
    if (PARAMS / FOLDERS["study"] / f"{name}.yaml").is_file():
        raise StudyFileError(f"{name} is a study of this package; give another name")
    guess = guess_program(folder)
    constants: dict[str, Scalar] = {}
    if "{batch_per_device}" in guess.command:
        constants["batch_per_device"] = 8
    values: dict[str, Sequence[Scalar]] = {"devices_per_node": [1]}
    if guess.launch == PER_RANK or Program(name, str(folder), guess.command).tells_processes:
        values = {"devices_per_node": [1, 2]}
    study = NewStudy(
        name, guess.command, values, launch=guess.launch, timing=guess.timing, constants=constants, notes=guess.notes
    )
    study = _equalise_threads(study)
    path = _write(study, folder, "another name")
    _let_git_ignore_outputs(folder)
    _print_guesses(study, print_line)
    print_line(f"{path.relative_to(folder)}: edit it, then `dlperf-study run {study.name}`")
    return 0


def measure(options: argparse.Namespace) -> int:
    """Benchmark a command over a parameter sweep: write its study file, run it, and build a report."""
    from dlperf_study.study.program_section import secret_problem

    folder = Path.cwd()
    study = _equalise_threads(_requested_study(options, folder))
    _check_names(study)
    if problem := secret_problem(shlex.split(study.command)):
        raise StudyFileError(f"the command {problem}")
    is_new = not _study_path(study, folder).exists()
    path = _write(study, folder, "another --name")
    say = progress_printer(options)
    if not options.dry_run:
        _let_git_ignore_outputs(folder)
        say(f"study file: {path.relative_to(folder)}")
    _print_guesses(study, say)
    # Failed runs of an earlier version of the command do not count.
    rerun = is_new and StudyPaths.of(study.name).configurations.exists() and not _has_completed_run(study.name)
    try:
        code = run_study_file(str(path), options, rerun)
    except DlperfStudyError:
        # Otherwise the corrected command would find a study file that differs.
        if is_new and not _has_completed_run(study.name):
            path.unlink()
        raise
    if is_new and options.dry_run:
        path.unlink()
    elif is_new and code and not _has_completed_run(study.name):
        path.unlink()
        print_aside(f"no run completed: {path.relative_to(folder)} is deleted, so you can retry under the same name")
    return code


def _has_completed_run(name: str) -> bool:
    from dlperf_study.execution.controller import has_result

    return has_result(StudyPaths.of(name))


def _requested_study(options: argparse.Namespace, folder: Path) -> NewStudy:
    from dlperf_study.programs.guesses import find_scripts, guess_launch, guess_timing

    # Placeholders need no quotes.
    is_plain = re.compile(r"[\w@%+=:,./{}-]+").fullmatch
    command = " ".join(argument if is_plain(argument) else shlex.quote(argument) for argument in options.program)
    scripts = find_scripts(command, folder)
    timing, *notes = (options.timing,) if options.timing else guess_timing(scripts)
    factors = _by_name("--sweep", [_values("--sweep", argument) for argument in options.sweep])
    constants = _by_name("--set", [_value("--set", argument) for argument in options.set])
    if not factors:
        # One configuration is a study too.
        factors = {"devices_per_node": [constants.pop("devices_per_node", 1)]}
    if options.batch_per_device:
        if "batch_per_device" in (*constants, *factors):
            raise StudyFileError("batch_per_device is given twice; remove --batch-per-device or the other option")
        constants["batch_per_device"] = options.batch_per_device
    return NewStudy(
        _study_name(options.name or (scripts[0].stem if scripts else Path(options.program[0]).stem)),
        command,
        factors,
        launch=options.launch or guess_launch(command),
        timing=timing,
        constants=constants,
        samples_per_step=options.samples_per_step,
        tokens_per_step=options.tokens_per_step,
        data=options.data,
        measurement={name: getattr(options, name) for name in MEASUREMENT},
        notes=tuple(notes),
    )


def _equalise_threads(study: NewStudy) -> NewStudy:
    """Return a study with as many threads per process everywhere."""
    from dlperf_study.programs.guesses import guess_environment

    environment, note = guess_environment(study.command, study.factors)
    if note:
        return replace(study, environment=environment, notes=(*study.notes, note))
    return study


def _print_guesses(study: NewStudy, say: Callable[[str], None]) -> None:
    for note in study.notes:
        say(f"guessed: {note}")


def _study_name(name: str) -> str:
    """Return a valid study name, also from a script's name."""
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    if re.match("[a-z]", plain):
        return plain
    return f"study_{plain}"


def _values(option: str, argument: str) -> tuple[str, list[Scalar]]:
    """Return a placeholder and its values, from ``name=1,2``."""
    name, _, listed = argument.partition("=")
    if not name or not listed:
        raise StudyFileError(f"{option} {argument!r}: write a name and its values, as {option} devices_per_node=2")
    values = []
    for element in listed.split(","):
        # As YAML reads it: ``2`` is a number, ``true`` no text.
        value = parse_mapping(f"value: {element}".encode(), f"{option} {argument!r}")["value"]
        if not isinstance(value, Scalar):
            raise StudyFileError(f"{option} {argument!r}: {value!r} is not a string, a number, true or false")
        values.append(value)
    if not is_of_one_kind(values):
        elements = zip(values, listed.split(","), strict=True)
        return name, [value if isinstance(value, str) else element.strip() for value, element in elements]
    return name, values


def _by_name(option: str, given: Sequence[tuple[str, T]]) -> dict[str, T]:
    """Return values by the name of their placeholder; raises StudyFileError for a name that is given twice."""
    values: dict[str, T] = {}
    for name, value in given:
        if name in values:
            raise StudyFileError(f"{option} {name} is given twice; write one {option} for it")
        values[name] = value
    return values


def _value(option: str, argument: str) -> tuple[str, Scalar]:
    """Return a placeholder and its only value, from ``name=1``."""
    name, values = _values(option, argument)
    if len(values) > 1:
        raise StudyFileError(f"{option} {argument!r}: {name} has {len(values)} values; give them to --sweep")
    return name, values[0]


def _check_names(study: NewStudy) -> None:
    """Reject a factor that is no placeholder of the command."""
    placeholders = Program("", "", study.command).placeholders
    valid = (*placeholders, *SCALE, *study_parameters())
    for option, names in (("--sweep", study.factors), ("--set", study.constants)):
        for name in names:
            if name not in valid:
                raise StudyFileError(
                    f"{option} {name}: the command has no {{{name}}}; {closest(name, (*placeholders, *SCALE))}its "
                    f"placeholders are {', '.join(placeholders) or 'none'}"
                )


def _study_path(study: NewStudy, folder: Path) -> Path:
    return folder / FOLDERS["study"] / f"{study.name}.yaml"


def _write(study: NewStudy, folder: Path, remedy: str) -> Path:
    """Write a study file into ``studies``.

    ``remedy``: what to give instead of a name that another study has.
    """
    path, content = _study_path(study, folder), study.as_yaml()
    if path.exists() and path.read_bytes() != content.encode():
        shown = path.relative_to(folder)
        raise StudyFileError(f"{shown} is there already, and differs; give {remedy}, or delete it")
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, content)
    return path


def _let_git_ignore_outputs(folder: Path) -> None:
    ignore_file = folder / ".gitignore"
    # Its names of files may have any encoding, and stay as they are.
    lines = []
    if ignore_file.exists():
        lines = ignore_file.read_bytes().splitlines()
    if (folder / ".git").exists() and not {IGNORED, f"/{IGNORED}", IGNORED.rstrip("/")} & {*map(os.fsdecode, lines)}:
        with naming(ignore_file), replacing(ignore_file) as unfinished:
            unfinished.write_bytes(b"\n".join([*lines, f"/{IGNORED}".encode(), b""]))
