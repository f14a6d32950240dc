"""The package audits itself: no table that a report or a paper exports contradicts itself."""

import csv
import math
from pathlib import Path

import pytest

from dlperf_study.audit.audit import audit
from dlperf_study.audit.reading.table_file import read_tables
from dlperf_study.core.errors import Severity, TableError

#: The tables of each study that must be read.
READ = {
    "golden_study": {
        "measured",
        "scaling",
        "comparison",
        "published",
        "communication_alone",
        "runs",
        "throughput-changes",
    },
    "quickstart": {"measured", "scaling", "runs"},
}
#: The ratios of the table of configurations, and what each is relative to.
RATIOS = {"speedup": "baseline_throughput", "relative_throughput": "reference_throughput"}


@pytest.mark.parametrize("study", READ)
def test_the_audit_finds_no_error_in_what_a_study_exports(study, exported):
    folder = exported / study
    read = set()
    for file in (*sorted((folder / "tables").glob("*.csv")), *sorted((folder / "dataset").glob("*.csv"))):
        try:
            tables = read_tables(file)
        except TableError:
            # Most tables hold no throughput or ratio; those that do are in READ.
            continue
        diagnostics = [each for result in audit(tables.results) for each in result.diagnostics]
        assert [str(each) for each in diagnostics if each.severity is Severity.ERROR] == [], file
        read.add(f"{file.parent.name}/{file.stem}")
    expected = {f"tables/{name}" for name in READ[study]}
    assert read >= {*expected, "dataset/configurations", "dataset/runs"}


@pytest.mark.parametrize("study", READ)
def test_every_ratio_is_the_quotient_of_its_throughputs(study, exported):
    with (exported / study / "dataset" / "configurations.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    compared = 0
    for row in rows:
        for ratio, denominator in RATIOS.items():
            if row[ratio] and row[denominator]:
                quotient = float(row["throughput"]) / float(row[denominator])
                assert math.isclose(float(row[ratio]), quotient, rel_tol=1e-9), (row["configuration_id"], ratio)
                compared += 1
    assert compared > 3


def test_the_default_study_claims_outcomes_although_a_run_was_disturbed(exported: Path):
    """Two of 42 runs had background load: a round was repeated, and no statistic has these runs."""
    with (exported / "quickstart" / "dataset" / "configurations.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    counts = sorted((row["runs_completed"], row["runs_counted"]) for row in rows)
    assert counts == [*[("7", "6")] * 2, *[("7", "7")] * 4]
    statuses = [row["baseline_significance"] for row in rows if row["baseline_significance"]]
    assert statuses == ["faster", "faster", "no significant difference"]
