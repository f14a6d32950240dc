"""One concept has one name, the field's: in identifiers, and in what people read."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dlperf_study.core.paths import PROJECT
from tests.docs import DOCS, PAGES
from tests.package_files import FILES, nodes

#: Words that were used where the field has one, with patterns, and right uses of them.
TERMS: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("private_terms.yaml").read_text(encoding="utf-8"))

#: Each word with the name that took its place. A plural is the same word.
RETIRED = {
    **dict.fromkeys(("complaint", "doubt", "caution", "remark", "mistake", "accused"), "diagnostic"),
    "innocent": "possible explanation",
    **dict.fromkeys(("asked", "told"), "run, requested, reported"),
    "whose": "log identification",
    **dict.fromkeys(("stated", "said"), "declared, inferred, reported"),
    **dict.fromkeys(("sibling", "judged"), "cross-run checks"),
    "original": "duplicate run",
    "wholeness": "completeness",
    "place": "step index, node",
    "brought": "installed packages",
    "alike": "version check",
    "conversation": "request, report",
    "handed": "submitted job",
    "last_words": "failure reason, last log lines",
    "partner": "baseline, reference",
    "reckoned": "computed",
    **dict.fromkeys(("stands", "lies", "beside", "behind", "another"), "is, next to, after, different"),
    **dict.fromkeys(("bears", "lacks", "lacking", "brings"), "has, is missing, provides"),
    "level": "value",
    "rate": "throughput",
    "departure": "change against the mean",
    "verdict": "significance",
    "pace": "speed",
}
#: Where a retired word has another meaning, which is right: in identifiers that match, as ``module.py: identifier``.
OTHER_MEANINGS = {
    # A stretch of a log at one throughput, a depth of the waterfall, and O1 and O2 of Paddle's mixed precision.
    "level": "throughput_levels|throughput_series|steady_state|job_throughputs|metrics/waterfall|libraries/paddle",
    # A learning rate, a dropout rate, and how fast an interconnect is.
    "rate": "learning_rate|LEARNING_RATE|cluster/hardware|training/libraries|training/models|Momentum",
}
#: Names of local variables that do not say what they hold.
VAGUE_LOCALS = re.findall(
    r"\w+",
    "another asked beside brought found known lacking number numbers one other others own place places said seen some "
    "stated text texts told whole word words",
)
#: How many uses are left to rename. These only ever get smaller.
RETIRED_USES_LEFT = 0
VAGUE_LOCALS_LEFT = 34


def locals_of(function: ast.AST) -> Iterator[str]:
    """Yield the variables of a function, without its parameters."""
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def identifiers(file: Path) -> Iterator[str]:
    """Yield what a module defines: its own name, classes, functions, parameters, variables and attributes."""
    yield file.stem
    for node in nodes(file):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def retired_words(identifier: str) -> set[str]:
    """Return the retired words in an identifier."""
    snake_case = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", identifier).lower()
    return {word for word in RETIRED if re.search(rf"(?:^|_){word}s?(?:_|$)", snake_case)}


def has_other_meaning(word: str, use: str) -> bool:
    return word in OTHER_MEANINGS and re.search(OTHER_MEANINGS[word], use) is not None


def describe(uses: Counter[str]) -> str:
    return "\n".join(f"{count} x {use}" for use, count in sorted(uses.items()))


def test_retired_words_are_in_no_identifier():
    uses: Counter[str] = Counter()
    for file in FILES:
        for identifier in set(identifiers(file)):
            use = f"{file.relative_to(PROJECT)}: {identifier}"
            uses.update(
                f"{use} ({RETIRED[word]})" for word in retired_words(identifier) if not has_other_meaning(word, use)
            )
    assert uses.total() <= RETIRED_USES_LEFT, describe(uses)


def test_local_variables_are_named_by_what_they_hold():
    uses: Counter[str] = Counter()
    for file in FILES:
        for node in nodes(file):
            if isinstance(node, ast.FunctionDef):
                uses.update(f"{file.relative_to(PROJECT)}: {name}" for name in {*VAGUE_LOCALS} & {*locals_of(node)})
    assert uses.total() <= VAGUE_LOCALS_LEFT, describe(uses)


def test_a_retired_word_is_noticed_wherever_it_is_in_a_name():
    assert retired_words("MistakesOfColumns") == {"mistake"}
    assert retired_words("_last_words_of") == {"last_words"}
    assert retired_words("placement") == set()


def searched_texts() -> Iterator[tuple[str, str]]:
    """Yield what people read, each with its path: pages, messages, templates of reports and notebooks."""
    files = [*PAGES, *(PROJECT / "docs" / "measured").glob("*.md"), *(PROJECT / "notebooks").glob("*.ipynb")]
    files += [*(PROJECT / "tests" / "messages").rglob("*.ambr"), *(PROJECT / "dlperf_study" / "report").rglob("*.j2")]
    for file in files:
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".ambr":
            text = re.sub(r"^# name: .*$", "", text, flags=re.MULTILINE)
        yield str(file.relative_to(PROJECT)), re.sub("|".join(TERMS["allowed"]), "", text)


@pytest.mark.parametrize("term", TERMS["terms"])
def test_a_private_term_is_in_no_text(term):
    pattern, use = re.compile(TERMS["terms"][term]["pattern"], re.IGNORECASE), TERMS["terms"][term]["use"]
    found = [f"{path}: {match[0]}" for path, text in searched_texts() for match in pattern.finditer(text)]
    assert found == [], f"write {use}"


def test_the_pages_stay_short():
    """The README is read in a minute, and all pages in an afternoon."""
    words = {page: len(page.read_text(encoding="utf-8").split()) for page in PAGES}
    assert words[PROJECT / "README.md"] <= 900
    assert sum(words.values()) <= 43_000


def test_the_glossary_has_a_source_for_each_term_in_order():
    rows = re.findall(
        r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    terms = [term for term, _, _ in rows[1:]]
    assert len(terms) >= 40
    assert terms == sorted(terms, key=str.lower)
    assert all(meaning.strip() and source.strip() for _, meaning, source in rows)
