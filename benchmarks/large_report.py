"""The report of 500 configurations: at most 150 s of processor, and each page at most 1 MB.

Two models, two frameworks, 25 batches and five numbers of devices, each with a reference, three rounds and every
question; constructed evidence, of which some runs have diagnostics.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from itertools import product

from benchmarks._command import cost_of_all_processes
from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.study.study import SECTIONS
from tests.evidence_factory import Planned, Recipe, configuration, write_study

MODELS, FRAMEWORKS = ("resnet50", "mobilenet_v2"), ("paddle_collective", "torch_ddp")
BATCHES, DEVICES = tuple(range(8, 208, 8)), (1, 2, 3, 4, 8)
PROTOCOL = {"warmup_steps": 20, "measured_steps": 200, "compute_only_steps": 40, "communication_only_steps": 20}
LIMIT_SECONDS, LIMIT_BYTES = 150.0, 1_000_000
BUILD = "from dlperf_study.report.pages import build; build('example')"


def main() -> int:
    """Write the evidence, build the report; return 1 when it takes too long or a page is too large."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[OUTPUTS_VARIABLE] = folder
        paths = StudyPaths.of("example")
        planned = list(planned_configurations())
        plan = write_study(paths, planned)
        plan.changed(sections=SECTIONS, published=("tensorpack_multigpu",)).write(paths.plan_file)
        seconds = cost_of_all_processes(sys.executable, "-c", BUILD).processor_seconds
        sizes = {page.name: page.stat().st_size for page in sorted(paths.report.glob("*.html"))}
    for name, size in sizes.items():
        print(f"{name}: {size / 1e6:.2f} MB (limit {LIMIT_BYTES / 1e6:g} MB)")
    print(f"report of {len(planned)} configurations: {seconds:.1f} s of processor (limit {LIMIT_SECONDS:.0f} s)")
    return int(seconds > LIMIT_SECONDS or max(sizes.values()) > LIMIT_BYTES)


def planned_configurations() -> Iterator[Planned]:
    """Yield the configurations of the study: larger batches take longer, more devices wait longer."""
    for model, framework, batch, devices in product(MODELS, FRAMEWORKS, BATCHES, DEVICES):
        parameters = {"model": model, "batch_per_device": batch, "devices_per_node": devices, **PROTOCOL}
        planned_configuration = configuration(framework=framework, **parameters)
        recipe = Recipe(
            compute_seconds=0.01 * batch * (1.02 if framework == "torch_ddp" else 1.0),
            exposed_communication_seconds=0.002 * devices,
            communication_seconds=0.02,
            noise=0.01 if batch % 16 else 0.04,
            rank_advantage=0.08 if batch == max(BATCHES) else 0.0,
            library="torch" if framework == "torch_ddp" else "paddle",
        )
        baseline = configuration(framework=framework, **parameters | {"devices_per_node": 1})
        reference = configuration(framework=FRAMEWORKS[0], **parameters)
        yield Planned(planned_configuration, recipe, 3, baseline, reference)


if __name__ == "__main__":
    sys.exit(main())
