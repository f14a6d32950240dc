"""The page on the audit shows a table and what is found in it."""

import re

from dlperf_study.audit import checks
from dlperf_study.audit.audit import audit, describe
from dlperf_study.audit.reading.table_file import read_tables
from dlperf_study.audit.result_frames import read_published_results
from dlperf_study.core.errors import Severity
from dlperf_study.core.paths import PROJECT

PAGE = (PROJECT / "docs" / "audit.md").read_text(encoding="utf-8")


def block(language):
    """Return the first block of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0]


def test_the_example_has_the_output_on_the_page(tmp_path):
    (tmp_path / "table.csv").write_text(block("csv"))
    *diagnostics, _ = describe(audit(read_tables(tmp_path / "table.csv").results)).split("\n\n")
    assert diagnostics == [block("text").rstrip()]


def test_every_check_is_explained():
    section = PAGE.split("## The checks\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(cells))) == list(checks.names())


def test_the_numbers_of_the_published_figures_are_those_of_today():
    section = PAGE.split("## Published tables\n")[1].split("\n## ")[0]
    assert {line.count(" | ") for line in section.splitlines() if line.startswith("| ")} == {5}
    documented = {
        row[0]: [*map(int, row[1:])] for row in re.findall(r"^\| `(\w+)` " + r"\| (\d+) " * 4, section, re.MULTILINE)
    }
    checked = audit(read_published_results(), each_number=True)
    heaviest_first = list(reversed(Severity))
    counted = {one.name: [one.examined, *map(one.count, heaviest_first)] for one in checked if one.diagnostics}
    assert documented == counted
