"""What its user called a study, a program, its settings and their values is shown as it was written, on every page."""

from pathlib import Path

import pytest

import dlperf_study
from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.report.formatting import display_name
from dlperf_study.study.configuration import Configuration
from tests.evidence_factory import Planned, Recipe, write_study
from tests.golden_study.study import build

STUDY = "my_own_study"
#: The last is also the name of a network of this package.
PROGRAMS = ("my_gpt_2", "vgg16")
PAGES = ("summary", "comparison", "scaling", "communication", "quality", "resources", "runs")
NAMES = ("lr_schedule", "cosine_decay", "linear_warmup")


def write_program_study(outputs: Path, program: str) -> None:
    """Write the evidence of a program on one and two devices, with two values of a setting of its own."""
    planned: list[Planned] = []
    for schedule in NAMES[1:]:
        for devices in (1, 2):
            values = {"study": STUDY, "cluster": "local", "devices_per_node": devices, "lr_schedule": schedule}
            measured = Configuration.for_program(program, values)
            baseline = planned[-1].configuration if devices == 2 else measured
            reference = planned[devices - 1].configuration if len(planned) > 1 else measured
            planned.append(Planned(measured, Recipe(), baseline=baseline, reference=reference))
    paths = StudyPaths(outputs / STUDY)
    plan = write_study(paths, planned)
    sections = ("scaling", "comparison", "communication", "quality", "resources")
    factors = ("lr_schedule", "devices_per_node")
    plan.changed(study=STUDY, title=f"Of {program}", sections=sections, factors=factors).write(paths.plan_file)


@pytest.fixture(scope="module", params=PROGRAMS)
def shown(request, tmp_path_factory) -> tuple[str, dict[str, str]]:
    """The name of a program, and all texts of its study by their kind."""
    outputs = tmp_path_factory.mktemp("outputs")
    write_program_study(outputs, request.param)
    with pytest.MonkeyPatch.context() as patch:
        texts = build(outputs, patch, STUDY, PAGES)
        patch.setenv(OUTPUTS_VARIABLE, str(outputs))
        study = dlperf_study.open_study(STUDY)
        terminal = f"{study} {study._repr_html_()}"
    kinds = {kind: "\n".join(content.values()) for kind, content in texts.items() if kind != "dataset"}
    return request.param, {kind: text.replace(r"\_", "_") for kind, text in kinds.items()} | {"terminal": terminal}


@pytest.mark.parametrize("kind", ["pages", "tables", "figures", "paper", "terminal"])
def test_names_of_users_are_shown_as_they_were_written(shown, kind):
    program, texts = shown
    text = texts[kind]
    for name in (*NAMES, program, STUDY):
        assert name.replace("_", " ") == name or name.replace("_", " ") not in text
    assert display_name(program) == program or display_name(program) not in text
    # The title of a figure, which names the program, is on its page.
    assert all(name in text for name in (NAMES if kind == "figures" else (*NAMES, program)))
