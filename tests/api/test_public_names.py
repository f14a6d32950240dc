"""The public names of the package: each is there, and none costs anything before it is used."""

import subprocess
import sys

import pandas as pd
import pytest

import dlperf_study
from dlperf_study.core.errors import TableError

#: What takes long to import; the package itself must need none of it.
HEAVY = ("numpy", "pandas", "matplotlib", "pydantic", "yaml", "scipy", "pyarrow", "rich", "dlperf_study.core")


def imported_by(code: str) -> set[str]:
    """Return the modules that a new Python has after some code."""
    command = [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_importing_the_package_imports_nothing_else() -> None:
    modules = imported_by("import dlperf_study\ndir(dlperf_study)")
    assert "dlperf_study" in modules
    assert modules.isdisjoint(HEAVY)
    assert [name for name in modules if name.startswith("dlperf_study.")] == []


def test_every_public_name_is_there_and_an_unknown_one_is_an_attribute_error() -> None:
    for name in dlperf_study.__all__:
        assert name in dir(dlperf_study)
        assert callable(getattr(dlperf_study, name)) or name == "__version__", name
    with pytest.raises(AttributeError):
        dlperf_study.open  # noqa: B018


def test_an_error_of_the_package_is_caught_by_its_public_name() -> None:
    with pytest.raises(dlperf_study.DlperfStudyError):
        dlperf_study.published("nothing")


def test_a_table_is_audited_whatever_was_imported_before() -> None:
    code = "import dlperf_study\nimport dlperf_study.audit.checks\nprint(callable(dlperf_study.audit_frame))"
    assert "True" in imported_by(code)
    table = pd.DataFrame({"GPUs": [1, 8], "Images/sec": ["352.72", "2630.10"], "Speedup": ["1.00", "7.20"]})
    [diagnostic] = dlperf_study.audit_frame(table).diagnostics.itertuples()
    assert (diagnostic.severity, diagnostic.check) == ("error", "ratios")
    right = table.assign(Speedup=["1.00", "7.46"])
    assert dlperf_study.audit_frame(right).diagnostics.empty
    unread = dlperf_study.audit_frame(right.assign(comment=range(len(right))))
    assert "comment" in repr(unread)
    with pytest.raises(TableError, match="not str"):
        dlperf_study.audit_frame("a.csv")  # type: ignore[arg-type]


def test_a_mistake_in_a_notebook_is_one_message() -> None:
    command = [sys.executable, "-m", "IPython", "--no-banner", "--colors=NoColor", "-c"]
    printed = subprocess.run(
        [*command, "import dlperf_study\ndlperf_study.published('nothing')"], capture_output=True, text=True
    )
    assert "PublishedError: " in printed.stdout
    assert "Traceback" not in printed.stdout + printed.stderr
    assert "other_results.py" not in printed.stdout


def test_a_published_source_is_a_frame_and_can_be_audited() -> None:
    numbers = dlperf_study.published("tensorpack_multigpu")
    points = dlperf_study.published("tensorpack_multigpu", points=True)
    assert set(numbers["metric"]) == {"throughput"}
    assert len(points) == (numbers["role"] == "result").sum()
    point = points.dropna(subset="speedup").iloc[-1]
    assert point["speedup"] == pytest.approx(point["throughput"] / point["baseline_throughput"])
    assert set(dlperf_study.audit_frame(numbers).diagnostics["severity"]) == {"error", "note"}
