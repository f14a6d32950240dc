"""Tables of any content: each is audited, or refused in one message."""

from hypothesis import HealthCheck, given, settings

from tests.audit.tables_of_anything import audit_or_refuse, contents


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents())
def test_a_table_is_audited_or_refused(tmp_path, content):
    audit_or_refuse(tmp_path / "table.csv", content)
