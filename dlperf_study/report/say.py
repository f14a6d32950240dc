"""Findings in words: the templates of ``report/words`` for pages, terminal, Markdown and papers.

Jinja is the template engine of nbconvert, which makes the pages.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template, pass_context
from jinja2.ext import Extension
from jinja2.lexer import Token
from markupsafe import Markup

from dlperf_study.core.wording import counted, list_first, value_text
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.findings.number import Number
from dlperf_study.metrics.columns import column_named
from dlperf_study.report import formatting
from dlperf_study.report.labels import Labels

WORDS = Path(__file__).with_name("words")
PERCENT = 0.01
#: Lines of a template are one sentence; other kinds of spaces stay.
_SPACES = re.compile(r"[ \n]+")
_CAPITALS = re.compile(r"(?<!^)([A-Z])")


@dataclass(frozen=True)
class Medium:
    """How a medium writes plain text, what stands out, and code; ``space``: between the bounds of a CI."""

    escape: Callable[[str], str]
    strong: Callable[[str], str] = str
    code: Callable[[str], str] = "`{}`".format
    space: str = " "


def markdown_escaped(text: str) -> str:
    """Return a text of which Markdown takes nothing for its own."""
    return re.sub(r"([&~|*_<>\[\]#`\\])", r"\\\1", text)


def _latex_code(text: str) -> str:
    return f"\\texttt{{{formatting.latex_escaped(text).replace('--', '-{}-')}}}"


HTML = Medium(escape, "<b>{}</b>".format, lambda text: f"<code>{escape(text)}</code>", "\N{NO-BREAK SPACE}")
TERMINAL = Medium(str)
MARKDOWN = Medium(markdown_escaped)
LATEX = Medium(formatting.latex_escaped, code=_latex_code, space="~")


def say(findings: Iterable[object], medium: Medium, dataset: Dataset | None = None) -> list[str]:
    """Return each finding as text of a medium; ``dataset``: that of the configurations which findings name."""
    labels = Labels(dataset) if dataset else None
    sentences = []
    for finding in findings:
        sentence = template(medium, type(finding).__name__).render(f=finding, labels=labels)
        sentences.append(_SPACES.sub(" ", sentence).strip(" "))
    return sentences


def say_one(finding: object, dataset: Dataset | None = None) -> str:
    """Return one finding as plain text."""
    [sentence] = say([finding], TERMINAL, dataset)
    return sentence


def caption(name: str, part: str = "caption", **facts: object) -> str:
    """Return a part of the words of a table or figure in ``captions.yaml``."""
    return _caption(name, part).render(facts).strip()


@cache
def _caption(name: str, part: str) -> Template:
    return _environment(TERMINAL).from_string(captions()[name][part])


@cache
def captions() -> dict[str, dict[str, str]]:
    """Return the parts of the words of each table and figure."""
    content: dict[str, dict[str, str]] = yaml.safe_load((WORDS / "captions.yaml").read_text(encoding="utf-8"))
    return content


@cache
def template(medium: Medium, kind: str) -> Template:
    """Return the template of a kind of finding: ``ComparisonCounts`` has ``comparison_counts.j2``."""
    name = _CAPITALS.sub(r"_\1", kind).lower()
    return _environment(medium).get_template(f"{name}.j2")


@cache
def _environment(medium: Medium) -> Environment:
    """Return the environment of a medium; text of templates and values is escaped, once."""

    class Escaped(Extension):
        """Escapes the literal text of templates, so that ``%`` or ``<`` may stand in any of them."""

        def filter_stream(self, stream: Iterable[Token]) -> Iterator[Token]:
            for token in stream:
                if token.type == "data":
                    token = Token(token.lineno, "data", medium.escape(token.value))
                yield token

    def finalize(value: object) -> str:
        return value if isinstance(value, Markup) else medium.escape(str(value))

    environment = Environment(
        loader=FileSystemLoader(WORDS),
        undefined=StrictUndefined,
        finalize=finalize,
        extensions=[Escaped],
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= _number_filters(medium) | _name_filters(medium)
    environment.filters["strong"] = lambda value: Markup(medium.strong(finalize(value)))
    environment.filters["code"] = lambda text: Markup(medium.code(text))
    environment.filters["text"] = lambda text: Markup(_with_code(medium, text))
    return environment


def _with_code(medium: Medium, text: str) -> str:
    """Return a message, with what it has between backticks as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return medium.escape(text)
    for position, part in enumerate(parts):
        parts[position] = medium.code(part) if position % 2 else medium.escape(part)
    return "".join(parts)


def _message(message: str) -> str:
    """Return the message of a diagnostic as a sentence."""
    end = "" if message.endswith("?") else "."
    return f"{message[0].upper()}{message[1:].rstrip('.')}{end}"


def _value(value: Any) -> str:
    return "not stated" if value is None else value_text(value)


def _number_filters(medium: Medium) -> dict[str, Callable[..., Any]]:
    def interval(text: str) -> Markup:
        value, bracket, bounds = text.partition(" [")
        return Markup(medium.escape(value) + medium.escape(bracket + bounds).replace(" ", medium.space))

    def ci(number: Number, unit: str = "", size: float = 1.0) -> Markup:
        bounds = (number.value, number.low, number.high)
        return interval(formatting.value_text(bounds, unit, decision=number.decision, size=size))

    def percent_ci(number: Number) -> Markup:
        return ci(number, f"{formatting.THIN_SPACE}%", PERCENT)

    return {
        "ci": ci,
        "percent_ci": percent_ci,
        "number": lambda value: f"{value:g}",
        "signed_percent": lambda share: f"{round(100 * share, 1) + 0.0:+.1f}{formatting.THIN_SPACE}%".replace(
            "-", formatting.MINUS
        ),
        "percent": lambda share: f"{100 * share:g}{formatting.THIN_SPACE}%",
        "percent_at_most": formatting.percent_at_most,
        "with_unit": formatting.with_unit,
        "unit": lambda column: column_named(column).unit,
        "count": counted,
    }


def _name_filters(medium: Medium) -> dict[str, Callable[..., Any]]:
    @pass_context
    def label(context: Any, configuration_id: str) -> str:
        labels: Labels = context["labels"]
        return labels.configuration(configuration_id)

    @pass_context
    def series(context: Any, configuration_id: str) -> str:
        labels: Labels = context["labels"]
        return labels.series(configuration_id)

    @pass_context
    def all_series(context: Any, configuration_ids: Sequence[str]) -> str:
        names = dict.fromkeys(series(context, configuration_id) for configuration_id in configuration_ids)
        return list_first(list(names), formatting.MOST_NAMED, "; ")

    @pass_context
    def labels(context: Any, configuration_ids: Sequence[str]) -> str:
        return list_first(
            [label(context, configuration_id) for configuration_id in configuration_ids], formatting.MOST_NAMED, "; "
        )

    @pass_context
    def versus(context: Any, finding: Any) -> str:
        names: Labels = context["labels"]
        return names.versus(finding.subject, finding.baseline)

    return {
        "label": label,
        "series": series,
        "all_series": all_series,
        "labels": labels,
        "versus": versus,
        "columns": formatting.listed_columns,
        "join_and": formatting.listed,
        "values": lambda values: " and ".join(map(_value, values)),
        "message": _message,
        "first": lambda items: list_first(list(items), formatting.MOST_NAMED),
        "display": formatting.display_name,
    }
