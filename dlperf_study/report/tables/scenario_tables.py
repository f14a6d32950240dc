"""What a change would give, by the physical model: as a table and as text."""

from collections.abc import Sequence

from dlperf_study.core.wording import counted
from dlperf_study.prediction.curves import Curve, Unit
from dlperf_study.prediction.physical_model import StepModel
from dlperf_study.prediction.prediction import UNTESTED_MODEL, Refusal, refused_curves
from dlperf_study.prediction.scenario import Scenario
from dlperf_study.report.formatting import format_bounded, integer, listed
from dlperf_study.report.tables.table import Cell, Heading, Table, as_text

METHOD = (
    "By the physical model: computation + input wait + waiting for jitter + max(0, exchange − overlap). What a change "
    f"does to the other parts is not in it, and it has no interval: {UNTESTED_MODEL}."
)
_NOTHING = "No series has the measurements that the physical model needs."


def scenario_table(results: Sequence[Scenario | Refusal]) -> Table:
    """Return the sizes of all series that can be computed, without and with the changes, a group for each series."""
    rows, groups, notes = [], [], []
    scenarios = [result for result in results if isinstance(result, Scenario)]
    for scenario in scenarios:
        for size in scenario.sizes:
            rates = (Cell(format_bounded(rate)[0]) for rate in (size.rate, size.changed_rate, size.ratio))
            rows.append((Cell(counted(size.units, scenario.curve.unit)), Cell(integer(size.devices)), *rates))
            groups.append(_title(scenario.curve))
        notes += [f"{_title(scenario.curve)}: {note}" for note in _notes(scenario)]
    units = listed(sorted({scenario.curve.rate_unit for scenario in scenarios}))
    changes = ", ".join(f"{name}={value}" for name, value in scenarios[0].changes.items()) if scenarios else ""
    headings = (
        Heading("Size"),
        Heading("Devices", numeric=True),
        Heading("By the model, as it is", units, numeric=True),
        Heading(f"With {changes}", units, numeric=True),
        Heading("Ratio", numeric=True),
    )
    title = f"What if {changes}" if changes else "What if"
    return Table("what-if", title, METHOD, headings, tuple(rows), tuple(notes), _NOTHING, tuple(groups))


def describe_scenarios(results: Sequence[Scenario | Refusal]) -> str:
    """Return what changes would give, and the reasons of refused series, as text for the command line."""
    parts = []
    for result in results:
        if isinstance(result, Scenario):
            parts.append(as_text(scenario_table([result])))
    for reason, curves in refused_curves(results).items():
        parts.append("\n".join([f"not computed: {reason}", *(f"  {_title(curve)}" for curve in curves)]))
    if any(isinstance(result, Scenario) for result in results):
        parts.append(METHOD)
    return "\n\n".join(parts)


def model_text(model: StepModel) -> str:
    """Return the terms of a model in one line."""
    cost = model.cost
    assumed = ", which is assumed, as the measured sizes do not tell it" if cost.is_assumed else ""
    if model.curve.last.parts is None:
        return f"the exchange grows with the trainers of a server{assumed}"
    parts = [f"computation {_milliseconds(model.computation_seconds)}"]
    if model.input_seconds:
        parts.append(f"input wait {_milliseconds(model.input_seconds)}")
    if model.jitter_seconds:
        parts.append(f"waiting for jitter {_milliseconds(model.jitter_seconds)}")
    last = model.curve.last.units
    # What a step waits for is measured; what hides the rest is not, where threads share cores.
    exchange = model.exchange_seconds(last)
    waited = exchange - model.hidden_seconds(last)
    parts.append(
        f"exchange {_milliseconds(exchange)} as {cost.algorithm.title}{assumed}, for which a step waits "
        f"{_milliseconds(waited)}"
    )
    if model.link_bandwidth:
        parts.append(f"link {8 * model.link_bandwidth / 1e9:.3g} Gbit/s")
    if cost.round_seconds:
        parts.append(f"{cost.round_seconds * 1e6:.3g} µs a round")
    return "; ".join(parts)


def _notes(scenario: Scenario) -> list[str]:
    """Return the terms of the model, and why sizes are left out."""
    notes = [f"{model_text(scenario.model)}."]
    notes += [f"{counted(units, scenario.curve.unit)}: {reason}." for units, reason in scenario.left_out.items()]
    return notes


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


def _title(curve: Curve) -> str:
    kind = "" if curve.unit == Unit.NODE else f", over {curve.unit}s"
    return f"{curve.title}{kind}"
