"""Parts of users: beside a study file, beside logs and tables, and in installed packages."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import dlperf_study
from dlperf_study.core.code_identity import COMMON_ROOTS, code_digest, module_digests, roots_without_folders
from dlperf_study.core.errors import RecordError, StudyFileError
from dlperf_study.core.part_search import PARTS_VARIABLE
from dlperf_study.core.paths import PROJECT, StudyPaths
from dlperf_study.core.registry import module_name
from dlperf_study.dataset.dataset import up_to_date
from dlperf_study.dataset.run_table import run_row
from dlperf_study.records.run import read_run
from dlperf_study.records.run_record import read
from dlperf_study.report.tables.study_tables import runs as runs_table
from dlperf_study.training import models
from tests.command_line import CLUSTER, shared_machine
from tests.evidence_factory import Planned, configuration, write_plan, write_run
from tests.test_adding_a_part import block

STUDY = """\
title: A model beside the study
about: Made for tests.
sections: [scaling]
scaling: weak
constants: {framework: paddle_collective, strategy: all_reduce, model: MODEL, image_size: 32, classes: 10}
factors: {devices_per_node: [2], batch_per_device: [4]}
baseline: {devices_per_node: 2}
measurement:
  {warmup_steps: 1, max_warmup_seconds: 0, measured_steps: 3, compute_only_steps: 2, communication_only_steps: 2,
   repetitions: 1}
"""
MODEL = block("A model", "python")
NAME = "softmax_regression"
METRIC = """\
from dlperf_study.metrics.metric import RC, Metric, Summary
from dlperf_study.metrics.throughput import slowest_training


def slowest_step(run):
    \"\"\"Return the seconds of the longest step of the slowest rank.\"\"\"
    return float(slowest_training(run).step_seconds.max())


METRICS = (
    Metric(
        "slowest_step_seconds", "Slowest step", "longest step of the slowest rank", RC, unit="s",
        value=slowest_step, summary=Summary.MEAN,
    ),
)
"""
PENDING = """\
from dlperf_study.execution.pending import find_pending
from dlperf_study.execution.planning import make_plan
for study in ("beside", "built_in"):
    print(len(find_pending(*make_plan(study, "./cluster.yaml", quick=False)).executions))
"""


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder of parts, which this process searches."""
    monkeypatch.setenv(PARTS_VARIABLE, str(tmp_path / "parts"))
    return tmp_path / "parts"


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def python(workspace: Path, *arguments: str) -> str:
    """Return what Python prints in the user's workspace."""
    outer = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "DLPERF_STUDY"))}
    environment = outer | {"PYTHONPATH": str(PROJECT)} | shared_machine()
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=workspace, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pending(workspace: Path) -> list[int]:
    """Return how many executions are missing in the study of the user's model, and in that of a built-in one."""
    return [int(line) for line in python(workspace, "-c", PENDING).split()]


def test_a_model_beside_a_study_is_trained_by_two_ranks_and_belongs_to_the_identity_of_its_runs(tmp_path):
    folder = tmp_path / "studies"
    write(folder / "parts/models/softmax_regression.py", MODEL)
    write(folder / "beside.yaml", STUDY.replace("MODEL", NAME))
    write(folder / "built_in.yaml", STUDY.replace("MODEL", "mobilenet_v2"))
    write(tmp_path / "cluster.yaml", CLUSTER)
    assert pending(tmp_path) == [1, 1]
    run = ("-m", "dlperf_study", "run", "beside", "--cluster", "./cluster.yaml")
    python(tmp_path, *run)
    paths = StudyPaths(tmp_path / "outputs" / "beside")
    [configuration] = paths.configurations.iterdir()
    run_paths = paths.configuration(configuration.name).run(1)
    assert read(run_paths)["status"] == "completed"
    assert run_paths.rank_log(0).exists()
    assert run_paths.rank_log(1).exists()
    require_copy_of_parts(paths, configuration)
    assert "nothing to do" in python(tmp_path, *run)

    write(folder / "parts/models/unused.py", MODEL.replace(NAME, "unused"))
    write(folder / "parts/metrics/stragglers.py", METRIC)
    write(folder / "parts/models/softmax_regression.py", f"# A comment.\n{MODEL}")
    assert pending(tmp_path) == [0, 1]
    write(folder / "parts/models/softmax_regression.py", MODEL.replace("Flatten()", "Flatten(1)"))
    assert pending(tmp_path) == [1, 1]


def require_copy_of_parts(paths: StudyPaths, configuration: Path) -> None:
    """Require that a submission names the copy of the parts which its study keeps, and where ranks find them."""
    submission = json.loads((configuration / "runs" / "1" / "submission.json").read_text())
    with tarfile.open(submission["job"]["archive"]) as archive:
        assert archive.getnames() == ["models/softmax_regression.py"]
    assert Path(submission["job"]["archive"]).parent == paths.folder / "parts"
    assert all(PARTS_VARIABLE in command["environment"] for command in submission["commands"])


REFUSED_MODELS = {
    "the name of a built-in part": ("resnet50", MODEL),
    "no declaration": ("my_net", "NET = 1\n"),
    "an error at import": ("my_net", "import no_such_library\n"),
    "no Python": ("my_net", "MODEL = (\n"),
    "another name": ("my_net", MODEL),
}


@pytest.mark.parametrize(("name", "text"), REFUSED_MODELS.values(), ids=REFUSED_MODELS)
def test_a_model_that_is_no_part_is_refused_with_its_file(name, text, parts, refused):
    write(parts / "models" / f"{name}.py", text)
    with refused(StudyFileError):
        models.load(name)


SIZE = """\
my_gpt:
  kind: gpt
  display_name: My GPT
  layers: 2
  hidden: 8
  heads: 2
  vocabulary: 9
  source: our own
"""


def test_a_size_beside_a_study_is_a_model_whose_numbers_belong_to_the_identity_of_the_code(parts, monkeypatch):
    write(parts / "models/sizes.yaml", f"# Ours.\n{SIZE}")
    assert models.load("my_gpt").sizes.hidden == 8
    roots = [module_name(models.__name__, "my_gpt")]
    names = {f"{models.__name__}.{name}" for name in ("my_gpt", "_gpt", "_torch_transformer")}
    assert names <= module_digests(roots).keys()
    assert roots[0] not in roots_without_folders(roots)
    other = parts.parent / "other" / "parts"
    write(other / "models/sizes.yaml", SIZE.replace("layers: 2", "layers: 3"))
    digest = code_digest(roots)
    monkeypatch.setenv(PARTS_VARIABLE, str(other))
    assert code_digest(roots) != digest


REFUSED_SIZES = {
    "the name of a built-in part": SIZE.replace("my_gpt", "gpt2"),
    "no source": SIZE.replace("source", "origin"),
    "an unknown kind": SIZE.replace("kind: gpt", "kind: gtp"),
    "an unknown size": SIZE.replace("heads", "head"),
    "no line of a size": SIZE.replace("layers: 2", "layers 2"),
}


@pytest.mark.parametrize("text", REFUSED_SIZES.values(), ids=REFUSED_SIZES)
def test_a_size_that_is_none_is_refused_with_its_file(text, parts, refused):
    write(parts / "models/sizes.yaml", text)
    with refused(StudyFileError):
        models.load("my_gpt")


def test_a_misspelt_folder_of_parts_is_refused(parts, refused):
    write(parts / "models" / "softmax_regression.py", MODEL)
    write(parts / "format" / "my_trainer.py", block("A log format", "python"))
    with refused(StudyFileError):
        models.names()


def test_a_metric_beside_a_study_is_in_its_dataset_and_its_report_and_not_in_the_identity_of_the_code(
    parts, monkeypatch
):
    configurations = [configuration(devices_per_node=devices) for devices in (1, 2)]
    paths = StudyPaths(parts.parent / "outputs" / "mine")
    for measured in configurations:
        for repetition in (1, 2, 3):
            write_run(paths, measured, repetition)
    write_plan(paths, map(Planned, configurations))
    write(parts / "metrics/stragglers.py", METRIC)
    monkeypatch.setenv(PARTS_VARIABLE, "")
    up_to_date(paths)
    without = code_digest(COMMON_ROOTS)
    monkeypatch.setenv(PARTS_VARIABLE, str(parts))
    dataset = up_to_date(paths)
    steps = dataset.steps[dataset.steps["window"] == "training"].groupby(["configuration_id", "repetition", "rank"])[
        "seconds"
    ]
    of_slowest = steps.agg(["sum", "max"]).sort_values("sum").groupby(["configuration_id", "repetition"])["max"].last()
    expected = dataset.runs.set_index(["configuration_id", "repetition"])["slowest_step_seconds"]
    assert expected.to_dict() == pytest.approx(of_slowest.to_dict())
    assert (dataset.configurations["slowest_step_seconds_low"] < dataset.configurations["slowest_step_seconds"]).all()
    results = dlperf_study.open_study(paths.folder)
    assert results.columns["slowest_step_seconds"].unit == "s"
    assert "Slowest step" in {heading.label for heading in runs_table(dataset).headings}
    assert code_digest(COMMON_ROOTS) == without


REFUSED_METRICS = {
    "no declaration": "METRIC = 1\n",
    "the name of a column": METRIC.replace('"slowest_step_seconds"', '"throughput"'),
    "another table": METRIC.replace("RC", "S"),
    "a formula that raises": METRIC.replace("float(slowest_training(run).step_seconds.max())", "1 / 0"),
}


@pytest.mark.parametrize("text", REFUSED_METRICS.values(), ids=REFUSED_METRICS)
def test_a_metric_that_is_no_part_is_refused_with_its_file(text, parts, refused):
    write(parts / "metrics/stragglers.py", text)
    run = write_run(StudyPaths(parts.parent / "outputs" / "mine"), configuration(), 1)
    with refused(RecordError):
        run_row(read_run(run))


def test_formats_beside_logs_and_checks_beside_a_table_are_used(tmp_path):
    (tmp_path / "studies").mkdir()
    write(tmp_path / "far/parts/formats/my_trainer.py", block("A log format", "python"))
    write(tmp_path / "far/parts/checks/enough_digits.py", block("An audit check", "python"))
    steps = "".join(f"[my_trainer] step {step} loss 6.9 speed {40 + step % 3}.5 samples/s\n" for step in range(1, 200))
    write(tmp_path / "far/logs/1n2g/r50_b4_fp32_1.log", f"batch: 4\n{steps}")
    identified = python(tmp_path, "-m", "dlperf_study", "ingest", "far/logs", "--yes", "--data-only")
    assert "my_trainer-" in identified
    write(tmp_path / "far/table.csv", "devices,throughput\n1,4\n2,8\n")
    audited = json.loads(python(tmp_path, "-m", "dlperf_study", "audit", "far/table.csv", "--json"))
    assert "enough_digits" in json.dumps(audited)


def test_a_part_of_an_installed_package_is_found_and_in_the_identity_of_the_code(parts, monkeypatch):
    site = parts.parent / "site"
    write(site / "my_package/__init__.py", "")
    write(site / "my_package/_sizes.py", "IMAGE_SIZE = 32\n")
    helped = MODEL.replace("image_size=32", "image_size=IMAGE_SIZE")
    write(site / "my_package/net.py", helped.replace("from typing", "from ._sizes import IMAGE_SIZE\nfrom typing", 1))
    write(site / "my_package-1.dist-info/METADATA", "Name: my_package\nVersion: 1\n")
    point = f"[dlperf_study.models]\n{NAME} = my_package.net\n"
    write(site / "my_package-1.dist-info/entry_points.txt", point)
    monkeypatch.syspath_prepend(site)
    assert models.load(NAME).image_size == 32
    digests = module_digests([module_name(models.__name__, NAME)])
    assert {"my_package", "my_package.net", "my_package._sizes"} <= digests.keys()


def test_a_part_in_a_folder_is_not_compared_on_nodes_and_what_it_imports_is(parts):
    write(parts / "models/my_net.py", MODEL.replace("_base import", "_mine import"))
    write(parts / "models/_mine.py", "from ._base import FLOPS_SOURCE, Model\n")
    roots = [module_name(models.__name__, "my_net")]
    mine = {f"{models.__name__}.{name}" for name in ("my_net", "_mine")}
    assert mine <= module_digests(roots).keys()
    compared = roots_without_folders(roots)
    assert f"{models.__name__}._base" in compared
    assert not mine & {*compared}
