"""The templates of findings: each kind has one, in every medium, short, and without a hole."""

import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from dlperf_study import findings
from dlperf_study.api.explorer import printed_rows
from dlperf_study.core.errors import Severity
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.findings import (
    communication,
    history,
    pages,
    prediction,
    published,
    quality,
    reasons,
    resources,
    scaling,
    selftest,
)
from dlperf_study.findings.number import Number
from dlperf_study.findings.pages import PAGES
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.metrics.metric import Dtype
from dlperf_study.report import say
from dlperf_study.report.macros import macros
from dlperf_study.report.methods import methods, results
from dlperf_study.report.page_findings import PageFindings, page_findings
from dlperf_study.selftest.result import Status
from dlperf_study.study.job import RunStatus
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import ALONE, TOGETHER, study

MEDIA = {"HTML": say.HTML, "terminal": say.TERMINAL, "Markdown": say.MARKDOWN, "LaTeX": say.LATEX}
HOLE = re.compile(
    r"\bNone\b|\bnan\b|\bNaN\b|\bNaT\b|<NA>|\binf\b|\[\]|\(\)|: [,.]|, [,.]|; [;.]|\{|\}|\bLoss\.|\bReason\."
)
MAX_TEMPLATES, MAX_WORDS = 60, 25
ONE, TWO = (configuration(devices_per_node=count) for count in (1, 2))
#: The columns that have no value at once, by the ends of their names.
NO_INTERVAL = ("_low", "_high", "significance", "_equal_within")
NO_RATIO = (*NO_INTERVAL, "speedup", "efficiency", "relative_throughput")


def kinds() -> dict[str, type]:
    """Return every kind of finding, by name: the dataclasses of ``findings`` but for the numbers in them."""
    found: dict[str, type] = {}
    for module in pkgutil.iter_modules(findings.__path__):
        for value in vars(importlib.import_module(f"{findings.__name__}.{module.name}")).values():
            if dataclasses.is_dataclass(value) and value.__module__.startswith(f"{findings.__name__}."):
                found[value.__name__] = value
    return {name: kind for name, kind in found.items() if kind is not Number}


def examples() -> Iterator[object]:
    """Yield findings of every kind, with every value of their enumerations."""
    number, ratio = Number(0.2, 0.1, 0.3), Number(1.2, 1.1, 1.3, 1)
    subject, other = TWO.configuration_id, ONE.configuration_id
    subjects = (subject, other)
    for role in ("baseline", "reference"):
        for significance in scaling.TEST_RESULTS:
            comparison = scaling.Comparison(
                subject, other, role, significance, ratio, equal_within=0.1, disturbed=subjects
            )
            yield replace(comparison, efficiency=number, exposed=number, is_doubtful=True, needs_correction=True)
            yield comparison
        for cause in scaling.CAUSES:
            yield scaling.Comparison(subject, other, role, "faster", ratio, cause=cause)
        counts = tuple((significance, 2) for significance in scaling.TEST_RESULTS)
        yield scaling.ComparisonCounts(role, 9, counts, 1, True)
        yield scaling.ComparisonCounts(role, 5, (), 5, False)
        for reason in reasons.Reason:
            no_result = reasons.NoResult(reason, ("failed (a & b)", "`make study`"), role, 2)
            yield from (no_result, scaling.NotCompared(subject, other, role, no_result))
            yield quality.NoThroughput(subject, no_result)
        all_reasons = tuple((reason, 1) for reason in reasons.Reason)
        yield scaling.NotComparedCounts(role, 20, 16, tuple((role, reason, 1) for reason in reasons.Reason))
        for declared, can_add_section in product((True, False), repeat=2):
            yield scaling.NothingCompared(role, declared, can_add_section)
    yield from (scaling.Throughput(subject, number, column) for column in ("throughput", "token_throughput"))
    yield scaling.Measured(1, 2)
    for loss in communication.Loss:
        stall = communication.Stall(subject, loss, number, tuple(communication.Included))
        yield from (stall, replace(stall, share=Number(0.2, -0.1, 0.4), included=()))
        yield from (communication.StallCounts(loss, 9, 2, 3, 0.01, only) for only in ((), (stall, stall)))
    yield from (communication.NoCommunication(is_none) for is_none in (True, False))
    yield quality.TrainedApart(2, subjects)
    yield quality.Implausible("is the batch size right?", ("speedup", "efficiency"), subjects)
    yield from (quality.QuickMode(1, has_interval, has_interval) for has_interval in (True, False))
    yield from (published.Audited(False, 0, 0, ()), quality.OtherDiagnostics(2, 0))
    yield quality.BackgroundLoad(3, 6, 1, "make study RERUN=1")
    for advice in quality.Advice:
        yield from (quality.TargetMissed(1, 6, 0.1, advice, 8, minutes) for minutes in (None, 5.5))
    yield quality.NoConclusion(3)
    endings = tuple((status, 1) for status in RunStatus if status != RunStatus.COMPLETED)
    yield from (quality.Runs(3, 9, (*endings, ("not_run", 1)), is_ingested) for is_ingested in (True, False))
    yield quality.Unmeasured(16, 20, all_reasons)
    yield from (quality.TokensOnly(1, 2), quality.NotSteady(1, 6), quality.OtherDiagnostics(0, 3))
    yield from (quality.Drift(6, 0.2, compared, 6) for compared in (4, 6))
    yield from (
        resources.Energy(subject, number, "GPU", "lowest"),
        resources.Energy(subject, number, "GPU"),
        resources.NoEnergy(("no counter",)),
    )
    yield from (resources.PeakMemory(subject, 1e9, column) for column in resources.MEMORY)
    yield from (resources.LimitedClocks(runs, 6, 0.5) for runs in (0, 2))
    yield from (published.NoSources(True), published.NoSources(False), published.PublishedCounts(9, 2, 1, 2))
    yield from (published.PublishedDifferences(3, common, ("batch_per_device",)) for common in ((), ("model",)))
    for diagnostics in ((), tuple((severity, 2) for severity in Severity)):
        yield from (published.Audited(is_published, 3, 9, diagnostics) for is_published in (True, False))
    for reason in ("", "too few sizes"):
        yield prediction.Predicted(subject, number, "samples/s", 4, "node", 32, number, 8, 0.9, reason)
    yield from (prediction.BackTest(series, -0.1, 0.2) for series in (1, 3))
    yield prediction.NotPredicted(subjects, "one size")
    for differing in ((), (("model", ("vgg16", None)),)):
        yield history.NothingInCommon("a", "b", differing)
    yield history.SessionCounts("b", 5, 9, tuple((significance, 1) for significance in history.TEST_RESULTS))
    yield from (history.SessionChange(subject, "throughput", ratio, significance) for significance in ("slower", None))
    yield from (history.TooFewSessions(5), history.ConditionsDiffer(()), history.ConditionsDiffer(("host",)))
    yield from (selftest.SelftestOutcome(5, 6, is_passed) for is_passed in (True, False))
    yield from (selftest.SelftestChecks(status, ("a", "b")) for status in Status if status != Status.PASSED)
    yield from (selftest.SelftestPower("It fails in 1 % of cases"), selftest.SelftestQuick())


@pytest.mark.parametrize("medium", MEDIA)
def test_every_kind_is_said_in_every_medium(medium):
    dataset = study(Planned(ONE, ALONE), Planned(TWO, TOGETHER))
    said_kinds = set()
    for finding in examples():
        [sentence] = say.say([finding], MEDIA[medium], dataset)
        if medium == "LaTeX":
            sentence = re.sub(r"\\[a-z]+\{[^}]*\}", "x", sentence.replace("-{}-", "--"))
        assert HOLE.findall(sentence) == [], sentence
        assert isinstance(finding, reasons.NoResult) or sentence.endswith((".", "?")), sentence
        said_kinds.add(type(finding).__name__)
    assert said_kinds == set(kinds())


def test_every_template_is_of_a_kind_and_short():
    templates = sorted(say.WORDS.glob("*.j2"))
    assert len(templates) <= MAX_TEMPLATES
    names = {re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower() for name in kinds()}
    assert {path.stem for path in templates} == names | {"terms"}
    for path in templates:
        if path.stem == "terms":
            continue
        text = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert len(re.findall(r"[\w'-]+", text)) <= MAX_WORDS, path.name


def test_text_of_users_is_escaped_once():
    finding = quality.Implausible("<b> & 5 % of `make_study`", ("speedup",), ())
    said = {name: say.say([finding], medium)[0] for name, medium in MEDIA.items()}
    assert "&lt;b&gt; &amp; 5 % of <code>make_study</code>. <b>Do not trust</b>" in said["HTML"]
    assert r"\textless{}b\textgreater{} \& 5\,\% of \texttt{make\_study}." in said["LaTeX"]
    assert r"\<b\> \& 5 % of `make_study`." in said["Markdown"]
    assert "<b> & 5 % of `make_study`." in said["terminal"]
    interval = say.say(
        [scaling.Throughput(ONE.configuration_id, Number(2, 1, 3), "throughput")], say.HTML, study(Planned(ONE))
    )
    assert "[1.0,\N{NO-BREAK SPACE}3.0]" in interval[0]


def without(dataset: Dataset, endings: tuple[str, ...]) -> Dataset:
    """Return a dataset in which the columns with these endings are missing."""
    tables = {}
    for name in ("runs", "configurations"):
        table = getattr(dataset, name).copy()
        for column in table:
            if column.endswith(endings) and COLUMNS[column].dtype in (Dtype.FLOAT, Dtype.STRING):
                table[column] = np.nan if COLUMNS[column].dtype is Dtype.FLOAT else None
        # In one block: pandas warns of tables that were assembled column by column.
        tables[name] = table.copy()
    return replace(dataset, **tables)


def said(dataset: Dataset) -> str:
    return "\n".join(sentence for name in PAGES for sentence in page_findings(dataset, name).sentences)


@pytest.mark.parametrize(
    "endings",
    [NO_INTERVAL, NO_RATIO, ("_seconds",), ("energy_per_sample",), ("step_seconds", "energy_of")],
)
def test_no_sentence_has_a_hole_where_numbers_are_missing(mixed, endings):
    text = said(without(mixed, endings))
    assert len(text.splitlines()) > len(PAGES)
    assert not HOLE.findall(text)


@pytest.mark.parametrize(
    "planned",
    [
        (Planned(ONE, ALONE, runs=0),),
        (Planned(ONE, ALONE, runs=1),),
        (Planned(ONE, ALONE), Planned(TWO, TOGETHER, runs=1)),
        (Planned(ONE, Recipe(status="failed", reason="it"), runs=3), Planned(TWO, TOGETHER)),
    ],
    ids=["no run", "one run", "one run of two devices", "no baseline"],
)
def test_no_sentence_has_a_hole_where_runs_are_missing(planned):
    dataset = study(*planned)
    assert not HOLE.findall(said(dataset))
    if planned[0].runs:
        assert not re.findall(r"\bnan\b|\bNone\b", methods(dataset) + macros(dataset))


def test_sentences_menus_papers_and_macros_print_a_number_alike():
    dataset = study(Planned(ONE, ALONE), Planned(TWO, TOGETHER))
    printed = re.findall(r"\{([^{}]*)\} % ", macros(dataset).replace("~", " ").replace(r"$\times$", " "))
    pairs = {re.sub(r"^(\S+) .*(\[)", r"\1 \2", number) for number in printed}
    text = " ".join((*page_findings(dataset, "scaling").sentences, results(dataset).replace("~", " ")))
    with_interval = re.findall(r"speedup ([\d.]+) (\[[^\]]+\])", text)
    assert len(with_interval) == 2
    assert {" ".join(pair) for pair in with_interval} <= pairs
    for metric in ("throughput", "speedup", "efficiency"):
        for row in printed_rows(dataset.configurations, metric).itertuples(index=False):
            assert " ".join(row[-2:]).strip() in {pair.removesuffix(" $\\times$") for pair in pairs}


def test_a_page_has_at_most_five_findings_each_once(mixed):
    for name in PAGES:
        shown = page_findings(mixed, name)
        assert len(shown.findings) <= pages.MAX_FINDINGS
        assert len({*shown.sentences}) == len(shown.sentences)
    assert "&lt;i&gt;" in PageFindings((), conditions="<i>")._repr_html_()


def test_the_sentences_of_a_study(mixed, snapshot):
    assert said(mixed).splitlines() == snapshot
