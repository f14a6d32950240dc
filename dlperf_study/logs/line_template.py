"""Line templates: a log line with names in braces for its numbers.

``it {step}/{*} loss {loss} | {throughput} img/s``: ``{*}`` is any text. All else is literal, except that there may be
more spaces next to a number, and that a digit stands for any digit.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from dlperf_study.logs.format import Line
from dlperf_study.logs.printed import THOUSANDS, PrintedMetric
from dlperf_study.logs.records import POSITION_COLUMNS

_ANY_TEXT = "*"
_PLACEHOLDER = re.compile(r"\{(\w+|\*)\}")
_IN_BRACES = re.compile(r"\{([^{}]*)\}")
#: Unlike those of programs, where a letter may directly follow: ``2.5it/s``.
_DIGITS = r"\d++(?:\.\d++)?|\.\d++"
_NUMBER = r"[-+]?(?:(?:{digits})(?:[eE][-+]?\d++)?|[nN]a[nN]|[iI]nf(?:inity)?)"
#: What would make a number, or a literal, a part of something longer.
_NUMBER_END, _WORD_END = r"(?![\w%]|[.,]\d)", r"(?!\w|/\w)"


def placeholders(template: str) -> list[str]:
    """Return the names in braces, in order, without ``{*}``."""
    return [name for name in _PLACEHOLDER.findall(template) if name != _ANY_TEXT]


def literal_text(template: str) -> str:
    """Return what a template has besides its names in braces."""
    return _PLACEHOLDER.sub("{}", template)


def needle(template: str) -> str:
    """Return the longest unique literal of a template, or empty."""
    literals = _PLACEHOLDER.sub("\n", template)
    candidates = set(map(str.strip, re.split(r"\d+|\n", literals))) - {""}
    unique = [part for part in sorted(candidates) if literals.count(part) == 1]
    return max(unique, key=len, default="")


def sample_line(template: str) -> str:
    """Return a line that matches a template."""
    return _PLACEHOLDER.sub(lambda name: "text" if name[1] == _ANY_TEXT else "1", template)


def template_problems(template: str) -> Iterator[str]:
    """Yield why no lines can be read by a template."""
    names = placeholders(template)
    for in_braces in _IN_BRACES.findall(template):
        if in_braces != _ANY_TEXT and not in_braces.isidentifier():
            rule = "a name begins with a letter or _, and has letters, digits and _ only"
            yield f"{{{in_braces}}} is not a name in braces: {rule}; write {{*}} for text to skip"
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if not names:
        yield "it has no number in braces, as {step}"
    elif not needle(template):
        yield "it needs a text between its numbers that appears once, to recognise its lines"
    for name in repeated:
        yield f"{{{name}}} appears {names.count(name)} times; write {{*}} for text to skip"
    for first, second in re.findall(r"(\{\w+\})(\{\w+\})", template):
        yield f"write a text between {first} and {second}"


@dataclass(frozen=True)
class TemplateLine(Line):
    """The lines of ``template``; ``named``: its metrics by placeholder."""

    template: str = ""
    named: tuple[tuple[str, PrintedMetric], ...] = ()

    def matched_beginning(self, text: str) -> str:
        """Return the part of the template that a line matches."""
        ends = []
        for name in _PLACEHOLDER.finditer(self.template):
            for end in name.span():
                ends.append(end)
        for end in reversed(ends):
            beginning = self.template[:end].strip()
            if beginning and re.search(template_line(beginning, dict(self.named)).head, text):
                return beginning
        return ""


def template_line(template: str, metrics: Mapping[str, PrintedMetric], evaluation: Sequence[str] = ()) -> TemplateLine:
    """Return the lines of a template without words of ``evaluation``.

    ``metrics``: by placeholder; other placeholders are positions, as ``step``.
    """
    names = placeholders(template)
    first, *later_parts = (_segment(part, metrics) for part in template.strip().split(f"{{{_ANY_TEXT}}}"))
    head = "".join([first, *(f"(?>.*?{part})" for part in later_parts)])
    if re.match(r"\w", template):
        head = rf"(?<!\w){head}"
    if re.search(r"\w$", template):
        head += _WORD_END
    if evaluation:
        head = rf"^(?!.*?{_any_word(evaluation)}).*?{head}"
    named = tuple((name, metrics[name]) for name in names if name in metrics)
    captured = tuple(metric for _, metric in named)
    return TemplateLine((needle(template),), head, captured=captured, template=template, named=named)


def evaluation_line(templates: Sequence[str], evaluation: Sequence[str]) -> Line:
    """Return the evaluation lines of templates; their numbers are not read."""
    return Line(tuple(map(needle, templates)), rf"^.*?{_any_word(evaluation)}", training=False)


def _segment(template: str, metrics: Mapping[str, PrintedMetric]) -> str:
    """Return the expression of a template without any text."""
    literals, names = _PLACEHOLDER.split(template)[::2], placeholders(template)
    parts = [_literal(literals[0])]
    for name, (before, after) in zip(names, pairwise(literals), strict=True):
        # A number that is not after a literal must not be the end of a longer one.
        start = "" if before else r"(?<![\w.,])"
        end = _NUMBER_END if not after or after[0].isspace() else ""
        group = metrics[name].name if name in metrics else name
        parts += [rf"\s*+{start}(?P<{group}>{_number(name, metrics)}){end}", _literal(after)]
    return "".join(parts)


def _number(name: str, metrics: Mapping[str, PrintedMetric]) -> str:
    if name in POSITION_COLUMNS:
        return r"\d++(?:\.\d++)?(?!,\d)"
    has_thousands = name in metrics and metrics[name].has_thousands
    return _NUMBER.format(digits=f"{THOUSANDS}|{_DIGITS}" if has_thousands else _DIGITS)


def _literal(text: str) -> str:
    """Return the expression of a literal, with optional extra spaces."""
    stripped = text.strip()
    if not stripped:
        return r"\s++" if text else ""
    before = r"\s++" if text[0].isspace() else ""
    after = r"\s++" if text[-1].isspace() else ""
    return f"{before}{_any_digits(stripped)}{after}"


def _any_digits(text: str) -> str:
    return re.sub(r"\d", lambda _: r"\d", re.escape(text))


def _any_word(words: Sequence[str]) -> str:
    return f"(?:{'|'.join(map(_any_digits, words))})"
