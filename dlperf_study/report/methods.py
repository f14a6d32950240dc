"""The paragraphs of a paper on methods and results, from the runs of a study, not from its plan."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from dlperf_study import __version__
from dlperf_study.core.wording import counted
from dlperf_study.dataset.configuration_table import SIGNIFICANCES
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.target_ci import too_wide
from dlperf_study.findings import quality, scaling
from dlperf_study.metrics.columns import column_named
from dlperf_study.metrics.comparison import EQUAL, RATIOS
from dlperf_study.metrics.environment import VERSION_PREFIX
from dlperf_study.metrics.run_status import begin_and_end, disturbed_configurations
from dlperf_study.metrics.statistics import MINIMUM_RUNS
from dlperf_study.metrics.steady_state import Answer, steadiness_tolerance
from dlperf_study.report import context
from dlperf_study.report.formatting import display_name, distinct_values, latex_escaped, listed, text_if
from dlperf_study.report.say import LATEX, say
from dlperf_study.study.configuration import parameters_in_scope
from dlperf_study.study.grid import Denominator
from dlperf_study.study.parameter import Scope

TEMPLATES = Path(__file__).parent / "templates" / "paper"
#: What is named of every training, also where captions take it as known.
_ALSO_NAMED = ("classes", "optimizer")
#: What other sentences name, or the batch that a kind of scaling holds constant.
_NAMED_ELSEWHERE = (
    *("framework", "strategy", "model", "nodes", "devices_per_node", "parameter_servers", "batch_per_device"),
    *context.SIZES,
)
#: How many letters of a commit identify it.
_COMMIT = 12
MAX_THROUGHPUTS = 8


def methods(dataset: Dataset) -> str:
    """Return short paragraphs as LaTeX; their citations are in ``references.bib``."""
    runs = dataset.completed_runs
    facts = {"plan": dataset.plan, "version": __version__, "runs": len(runs), **_statistics(dataset)}
    facts["is_of_logs"] = bool(dataset.plan.ingested_from)
    if facts["is_of_logs"]:
        facts |= {"conditions": context.conditions(dataset), "merging": context.merging(dataset)}
    else:
        facts |= _training(dataset) | _settings(dataset) | _course(dataset) | _target(dataset) | _windows(dataset)
    environment = Environment(loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, finalize=_escaped)
    environment.filters |= {"count": counted, "number": "{:g}".format}
    lines = environment.get_template("methods.tex.j2").render(facts).splitlines()
    paragraphs = " ".join(filter(None, map(str.strip, lines)))
    return re.sub(r" (?=\\paragraph)", "\n\n", paragraphs) + "\n"


def _escaped(value: object) -> str:
    return value if isinstance(value, Markup) else latex_escaped(str(value))


def _training(dataset: Dataset) -> dict[str, Any]:
    """Return what was trained with which software, and on which machine."""
    runs, rows = dataset.completed_runs, dataset.measured
    libraries, python = context.versions(runs), _known(runs, "python_version")
    return {
        "trained": _known(rows, _trained(dataset)),
        "parallelism": _parallelism(dataset),
        "devices": _counted_values(rows, "world_size", "device"),
        "kind": ": ".join(filter(None, (_known(runs, "device"), _known(runs, "device_name")))),
        "nodes": int(rows["nodes"].max()),
        "cores": _counted_values(runs, "cores", "core"),
        "interconnect": _known(runs, "interconnect"),
        "software": listed(filter(None, (libraries, text_if(python, f"Python {python}"), _known(runs, "system")))),
    }


def _parallelism(dataset: Dataset) -> str:
    """Return the frameworks, each with its strategies: `` by PyTorch DDP (all-reduce)``; empty of a user's program.

    A framework that trained some of the models has their names.
    """
    if dataset.plan.is_program:
        return ""
    rows, parts = dataset.measured, []
    for name, of_framework in rows.groupby("framework", sort=False):
        trained_some = of_framework["model"].nunique() < rows["model"].nunique()
        only = text_if(trained_some, f"; {context.list_values(of_framework['model'])} only")
        parts.append(f"{display_name(name)} ({context.list_values(of_framework['strategy'])}{only})")
    return f" by {listed(parts)}"


def _settings(dataset: Dataset) -> dict[str, str]:
    """Return the settings of the training, each with its values, as far as they are known."""
    rows = dataset.measured
    further = () if dataset.plan.is_program else _ALSO_NAMED
    non_defaults = context.non_defaults(rows, parameters_in_scope(Scope.WORKLOAD, Scope.NETWORK))
    unnamed = [name for name in non_defaults if name not in _NAMED_ELSEWHERE]
    names = dict.fromkeys((*context.named_factors(dataset, rows), *further, *unnamed))
    # The first sentence says what is trained.
    names.pop(_trained(dataset))
    constant, varied = [], []
    for name in names:
        label, values = column_named(name).words, distinct_values(rows[name])
        if len(values) == 1:
            constant.append(f"{label} {_known(rows, name)}")
        elif values:
            varied.append(f"{label} ({_known(rows, name)})")
    usual = context.usual_of_names(dataset)
    return {"constant": listed(constant), "varied": listed(varied), "usual": listed(usual)}


def _trained(dataset: Dataset) -> str:
    return "own_program" if dataset.plan.is_program else "model"


def _known(table: pd.DataFrame, name: str) -> str:
    """Return the values of a column as a sentence lists them; empty where none is known."""
    return context.list_values(table[name]) if distinct_values(table[name]) else ""


def _counted_values(table: pd.DataFrame, name: str, noun: str) -> str:
    """Return the values of a number of things with their noun: ``1 and 2 devices``; empty where none is known."""
    values = _known(table, name)
    return text_if(values, f"{values} {noun}{text_if(values != '1', 's')}")


def _course(dataset: Dataset) -> dict[str, Any]:
    """Return which runs were made, and in which order."""
    runs, rows = dataset.completed_runs, dataset.measured
    versions = runs["git_commit"].dropna().drop_duplicates().astype(str)
    commits = versions[~versions.str.startswith(VERSION_PREFIX)].str[:_COMMIT]
    return {
        "configurations": len(rows),
        "stretch": context.stretch_of_time(runs),
        "commits": Markup(listed(map("\\texttt{{{}}}".format, commits))),
        "is_changed": runs["git_dirty"].fillna(False).astype(bool).any(),
        "sentences": Markup(" ".join(say([quality.runs(dataset), *quality.unmeasured(dataset)], LATEX, dataset))),
        "alone": int(runs["round"].isna().sum()),
        "fewest": int(rows["runs_completed"].min()),
        "most": int(rows["runs_completed"].max()),
        "disturbed": dataset.disturbed_runs,
        "including": len(disturbed_configurations(dataset.runs)),
        "notes": " ".join(context.breakdown_notes(dataset)),
    }


def _target(dataset: Dataset) -> dict[str, Any]:
    """Return how many configurations reached the target precision; nothing where a study has none."""
    if dataset.plan.target_ci is None:
        return {}
    count = len(dataset.reached_ci_widths)
    return {"targets": count, "reached": count - len(dataset.missed_ci_widths), "limit": _limit(dataset)}


def _limit(dataset: Dataset) -> str:
    """Return what ended measuring before all intervals were narrow enough; empty where nothing of the study did."""
    plan = dataset.plan
    is_too_wide = dataset.runs["configuration_id"].isin(too_wide(plan, dataset.throughputs))
    rounds = dataset.runs[is_too_wide].groupby("configuration_id")["repetition"].max()
    if rounds.empty:
        return ""
    if (rounds >= plan.rounds.most).all():
        return "runs"
    minutes, (begin, end) = plan.time_budget_minutes, begin_and_end(dataset.runs)
    # An interrupted study ends before its budget does.
    return text_if(minutes is not None and end - begin >= pd.Timedelta(minutes=minutes), "minutes")


def _windows(dataset: Dataset) -> dict[str, Any]:
    """Return how long the windows are, and whether they are steady."""
    facts: dict[str, Any] = {"answers": len(dataset.completed_runs)}
    # A window can be shorter than its time, as its steps may be faster than those of the warm-up.
    names = {"steps": "measured_steps", "seconds": "measured_seconds", "warmup": "warmup_steps"}
    for fact, name in names.items():
        values = dataset.measured.loc[dataset.measured[name].fillna(0) > 0, name]
        bounds = dict.fromkeys(map("{:g}".format, (values.min(), values.max())))
        facts[fact] = text_if(len(values), " to ".join(bounds))
    answers = dataset.completed_runs["steadiness"]
    unsteady = int(answers.eq(Answer.NOT_STEADY).sum())
    has_steadiness = not answers.empty and (answers.notna().all() or unsteady)
    tolerance = 100 * steadiness_tolerance(dataset.plan.target_ci)
    return facts | {"unsteady": unsteady, "has_steadiness": has_steadiness, "tolerance": tolerance}


def _statistics(dataset: Dataset) -> dict[str, Any]:
    """Return how runs became the numbers of configurations, and how these were compared, as far as they were."""
    rows, ratios = dataset.measured, ""
    # Every baseline and reference has the interval [1, 1] to itself.
    if any(rows.loc[~rows[f"is_{role}"], f"{ratio}_low"].notna().any() for role, ratio in RATIOS.items()):
        ratios = "rounds" if dataset.completed_runs["round"].notna().any() else "welch"
    significances = set(pd.concat(list(map(rows.__getitem__, SIGNIFICANCES.values()))).dropna())
    facts = {"has_interval": dataset.has_interval, "needed": MINIMUM_RUNS, "ratios": ratios}
    facts |= {"looks": dataset.looks, "has_exposed": rows["exposed_communication_seconds"].notna().any()}
    facts["has_speedups"] = rows.loc[~rows["is_baseline"], "speedup"].notna().any()
    return facts | {"has_significance": bool(significances), "has_equal": EQUAL in significances}


def results(dataset: Dataset) -> str:
    """Return the paragraph on results: the declared comparisons, or the throughputs."""
    study = dataset.plan.study
    counts = f"Configurations measured: \\studyfact{{{study}}}{{configurations}}; runs: \\studyfact{{{study}}}{{runs}}."
    return "\n".join([counts, *say(_findings(dataset), LATEX, dataset)]) + "\n"


def _findings(dataset: Dataset) -> Iterator[object]:
    yield from quality.implausible(dataset)
    yield from quality.remedies(dataset)
    nothing = list(quality.no_conclusion(dataset))
    yield from nothing
    compared: dict[Denominator, list[scaling.Compared]] = {}
    for question in dataset.plan.sections:
        if question == "scaling":
            compared["baseline"] = scaling.speedups(dataset)
        elif question == "comparison":
            compared["reference"] = scaling.references(dataset)
    if nothing or not any(compared.values()):
        yield from scaling.throughputs(dataset)[:MAX_THROUGHPUTS]
        return
    for role, comparisons in compared.items():
        if comparisons:
            yield from scaling.lines(comparisons, dataset, role)
