"""No number, sentence, table or figure of the golden study changes unnoticed.

``pytest tests/golden_study --snapshot-update`` accepts a change; ``git diff`` shows it.
"""

import pytest


@pytest.mark.parametrize("kind", ["dataset", "pages", "tables", "figures", "paper"])
def test_the_same(kind, golden, snapshot):
    changed = [name for name, text in golden[kind].items() if snapshot(name=name) != text]
    assert not changed, f"{kind} changed: accept it with `pytest tests/golden_study --snapshot-update`, read `git diff`"
