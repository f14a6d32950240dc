"""Tables of any content: each is audited, or refused in one message."""

import pytest
from hypothesis import HealthCheck, given, settings

from dlperf_study.audit.audit import audit, describe
from dlperf_study.audit.table_file import read_tables
from dlperf_study.errors import TableError
from tests.audit.tables_of_anything import audit_or_refuse, contents


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents())
def test_a_table_is_audited_or_refused(tmp_path, content):
    audit_or_refuse(tmp_path / "table.csv", content)


def test_a_rate_of_zero_is_no_baseline(tmp_path):
    (tmp_path / "table.csv").write_text("world_size,throughput,speedup\n1,0,1\n2,190.0,1.90\n")
    text = describe(audit(read_tables(tmp_path / "table.csv").results))
    assert "error (ratios): 1.90 is relative to 0, and nothing can be" in text


@pytest.mark.parametrize(("size", "message"), [("2.5", "integer"), ("inf", "not finite")])
def test_devices_are_counted(tmp_path, size, message):
    (tmp_path / "table.csv").write_text(f"world_size,throughput\n{size},100\n")
    with pytest.raises(TableError, match=f"line 2: world_size is '{size}', which is .*{message}"):
        read_tables(tmp_path / "table.csv")
