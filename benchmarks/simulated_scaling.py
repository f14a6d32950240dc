"""Predictions against trainings of which everything is known: simulated on 1, 2 and 4 nodes, predicted up to 512 nodes.

Launch from the root of the project: ``python -m benchmarks.simulated_scaling [--devices 4096] [--write]``. It prints a
table of docs/prediction.md, in a few minutes; ``--write`` writes it and its figure. It ends with 1 if the ring of nodes
misses its limit for twice the measured nodes.
"""

import argparse
import io
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from benchmarks._collectives import Link, Network
from benchmarks._simulated_training import LAYOUTS, SERVERS, Training, Work
from dlperf_study.core.paths import PROJECT
from dlperf_study.evidence.rank_log import Window
from dlperf_study.generated import between_markers
from dlperf_study.metrics.communication import fitted_cost
from dlperf_study.metrics.statistics import Estimate
from dlperf_study.prediction.curves import Curve, CurvePoint, Unit
from dlperf_study.prediction.intervals import is_for_ring
from dlperf_study.prediction.node_ring import predicted_rate
from dlperf_study.prediction.physical_model import model_of
from dlperf_study.prediction.step_parts import StepParts
from dlperf_study.programs.worker.windows import exchange_sizes
from dlperf_study.report.figures.style import MARKERS, PAGE, PALETTE, publication_style, quantity_axes

DOCS_PAGE = PROJECT / "docs" / "prediction.md"
FIGURE = PROJECT / "docs" / "images" / "prediction-simulation.svg"
#: Nodes of eight devices: 50 GB/s inside a node, 25 Gbit/s between nodes. What a transfer takes is 5 % more on average,
#: by chance.
NETWORK = Network(8, Link(5e-6, 50e9), Link(10e-6, 25e9 / 8, jitter=0.05))
MEASURED_NODES, RUNS = (1, 2, 4), 3
#: Steps of a measured run and of one that says the truth, and those before them.
STEPS, TRUE_STEPS, WARM_UP = 20, 8, 2
SAMPLES = 64.0
#: Exchanges of each size that are measured alone, and the largest part that is exchanged at once.
EXCHANGES, PART_BYTES = 10, 25e6
#: The layouts whose computation can't be measured without their exchange, and those whose exchange has one size.
DIVIDED, OF_ONE_SIZE = ("sharded", "pipeline"), ("sharded", "pipeline", "servers", "asynchronous servers")
#: By how much the ring of nodes may miss twice the measured nodes.
LARGEST_ERROR = 0.05


@dataclass(frozen=True)
class Truth:
    """One layout: its measured curve, and the true rate on numbers of nodes that were not measured."""

    layout: str
    curve: Curve
    rates: Mapping[int, float]

    def errors(self, predicted: Callable[[Curve, int], float]) -> dict[int, float]:
        """Return predicted / true rate − 1 by the number of devices."""
        count = self.curve.devices_per_unit
        return {nodes * count: predicted(self.curve, nodes) / rate - 1 for nodes, rate in self.rates.items()}


def rate_of(layout: str, nodes: int, steps: int, seed: int) -> float:
    """Return the samples/s of one simulated run."""
    generator = np.random.default_rng([list(LAYOUTS).index(layout), nodes, seed])
    run = Training(NETWORK, Work(), nodes, WARM_UP + steps, generator)
    LAYOUTS[layout](run)
    return SAMPLES * run.devices / run.step_seconds(WARM_UP)


def exchange_alone(layout: str, nodes: int, size: float, seed: int) -> float:
    """Return the mean seconds of an exchange of ``size`` bytes without computation; 0 where nothing is exchanged."""
    generator = np.random.default_rng([list(LAYOUTS).index(layout), nodes, seed, round(size)])
    work = Work(0.0, size, math.ceil(size / PART_BYTES), deviation=0.0, micro_batches=0)
    run = Training(NETWORK, work, nodes, 1 + EXCHANGES, generator)
    LAYOUTS[layout](run)
    return run.step_seconds(1)


def latency_of(layout: str, nodes: int) -> float:
    """Return the latency as a run fits it: to exchanges of several sizes."""
    sizes = exchange_sizes(int(Work().gradient_bytes))
    windows = []
    for size in sizes:
        seconds = np.full(EXCHANGES, exchange_alone(layout, nodes, size, 0))
        windows.append(Window("exchange", seconds.sum(), seconds, seconds, seconds, size, None, None))
    return fitted_cost(np.array(sizes, dtype=float), windows).latency_seconds


def parts_of(layout: str, nodes: int, rate: float) -> StepParts:
    """Return the parts of a step as a study measures them: computation and exchange alone, as far as each can be."""
    work, devices = Work(), nodes * NETWORK.devices_per_node
    exchanges = [exchange_alone(layout, nodes, work.gradient_bytes, seed) for seed in range(RUNS)]
    generator = np.random.default_rng([nodes, RUNS])
    computation = work.seconds * np.exp(generator.normal(0.0, work.deviation, (RUNS * STEPS, devices)))
    is_divided = layout in DIVIDED
    # Ranks of asynchronous servers don't wait for each other.
    waits = not is_divided and layout != "asynchronous servers"
    bytes_of_layout = {"sharded": 3.0, "pipeline": 1 / NETWORK.devices_per_node}
    return StepParts(
        step_seconds=SAMPLES * devices / rate,
        ranks=nodes if layout == "pipeline" else devices,
        servers=SERVERS if layout.endswith("servers") else 0,
        computation_seconds=None if is_divided else float(computation.mean()),
        jitter_seconds=float(computation.max(axis=1).mean() - computation.mean()) if waits else 0.0,
        exchange_seconds=float(np.mean(exchanges)) or None,
        exchange_error=Estimate.of(np.log(exchanges)).error or 0.0 if exchanges[0] else None,
        latency_seconds=None if layout in OF_ONE_SIZE else latency_of(layout, nodes),
        exchanged_bytes=work.gradient_bytes * bytes_of_layout.get(layout, 1.0),
        gathers=layout == "sharded",
        is_asynchronous=layout == "asynchronous servers",
    )


def truth_of(layout: str, largest: int) -> Truth:
    """Simulate a layout on the measured nodes, in three runs each, and on each doubling up to ``largest`` nodes."""
    points = []
    for nodes in MEASURED_NODES:
        rates = [rate_of(layout, nodes, STEPS, seed) for seed in range(RUNS)]
        parts, log_rate = parts_of(layout, nodes, float(np.mean(rates))), Estimate.of(np.log(rates))
        points.append(CurvePoint(nodes, nodes * NETWORK.devices_per_node, log_rate, parts.servers, parts))
    has_servers = layout.endswith("servers")
    curve = Curve(layout, "simulation", Unit.NODE, tuple(points), has_servers=has_servers, on_gpus=True)
    nodes, true_rates = 2 * MEASURED_NODES[-1], {}
    while nodes <= largest:
        true_rates[nodes] = rate_of(layout, nodes, TRUE_STEPS, RUNS)
        nodes *= 2
    return Truth(layout, curve, true_rates)


def errors_of_ring(truth: Truth) -> dict[int, float]:
    """Return the errors of the ring of nodes by the number of devices; none where it is refused."""
    return truth.errors(predicted_rate) if is_for_ring(truth.curve) else {}


def errors_of_model(truth: Truth) -> dict[int, float]:
    """Return the errors of the physical model by the number of devices; none where it is refused."""
    model = model_of(truth.curve)
    return {} if isinstance(model, str) else truth.errors(lambda _, nodes: model.rate(nodes))


#: What is compared with the truth, by what the page calls it.
METHODS: dict[str, Callable[[Truth], dict[int, float]]] = {
    "node ring": errors_of_ring,
    "physical model": errors_of_model,
}


def table(truths: Sequence[Truth], devices: Sequence[int]) -> Iterator[str]:
    """Yield the lines of a table in Markdown: the error of each method on each layout, in per cent."""
    yield f"| layout | method | {' | '.join(f'{count:,}' for count in devices)} |"
    yield f"|---|---|{'--:|' * len(devices)}"
    for truth in truths:
        for method, errors_of in METHODS.items():
            errors = errors_of(truth)
            cells = [f"{100 * errors[count]:+.1f}".replace("-", "−") if count in errors else "–" for count in devices]
            yield f"| {truth.layout} | {method} | {' | '.join(cells)} |"


def draw(truths: Sequence[Truth]) -> Figure:
    """Return the figure: for each method, the error on each layout over the number of devices."""
    with publication_style():
        drawing = Figure(figsize=(PAGE.inches, 2.7), layout="constrained")
        panels = drawing.subplots(1, len(METHODS), sharey=True, squeeze=False)[0]
        for axes, (method, errors_of) in zip(panels, METHODS.items(), strict=True):
            axes.axhline(0, color="black", linewidth=0.6)
            for truth, colour, marker in zip(truths, PALETTE, MARKERS, strict=False):
                errors = errors_of(truth)
                if errors:
                    values = 100 * np.array(list(errors.values()))
                    axes.plot(list(errors), values, color=colour, marker=marker, label=truth.layout)
            axes.set_xscale("log", base=2)
            counts = [NETWORK.devices_per_node * nodes for nodes in truths[0].rates]
            axes.set_xticks(counts, [f"{count:,}" for count in counts])
            axes.xaxis.set_minor_locator(NullLocator())
            axes.set_yscale("symlog", linthresh=10)
            axes.set_yticks(
                [-50, -10, -5, 0, 5, 10, 50, 100, 500], ["−50", "−10", "−5", "0", "5", "10", "50", "100", "500"]
            )
            axes.set_xlabel("Devices")
            axes.set_title(f"{method[0].upper()}{method[1:]}, from 8, 16 and 32 devices")
            quantity_axes(axes)
        panels[0].set_ylabel("Error of the predicted throughput (%)")
        # The last method has something to say of all layouts.
        drawing.legend(*panels[-1].get_legend_handles_labels(), loc="outside lower center", ncols=len(truths))
        drawing.draw_without_rendering()
    return drawing


def write_figure(drawing: Figure, file: Path) -> None:
    """Write a figure as SVG: the same bytes for the same simulation."""
    content = io.StringIO()
    with publication_style():
        drawing.savefig(content, format="svg", metadata={"Date": None, "Creator": "dlperf_study"}, facecolor="white")
    _, _, picture = content.getvalue().partition("<svg ")
    file.write_text(f"<svg {picture}", encoding="utf-8")


def main() -> int:
    """Print the table; return 1 where a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=4096, help="the largest number of devices that is simulated")
    parser.add_argument("--write", action="store_true", help="write the table and the figure of docs/prediction.md")
    options = parser.parse_args()
    truths = list(map(partial(truth_of, largest=options.devices // NETWORK.devices_per_node), LAYOUTS))
    devices = [NETWORK.devices_per_node * nodes for nodes in truths[0].rates]
    lines = list(table(truths, devices))
    print("\n".join(lines))
    if options.write:
        text = DOCS_PAGE.read_text(encoding="utf-8")
        DOCS_PAGE.write_text(between_markers(text, "simulation", "\n".join(lines)), encoding="utf-8")
        write_figure(draw(truths), FIGURE)
    next_sizes = [abs(error) for truth in truths for error in list(errors_of_ring(truth).values())[:1]]
    return int(max(next_sizes) > LARGEST_ERROR)


if __name__ == "__main__":
    sys.exit(main())
