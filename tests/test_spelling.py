"""What is said of a name that there is not."""

from dlperf_study.wording import closest, unknown


def test_an_unknown_name_is_answered_with_the_likeliest_and_all() -> None:
    assert unknown("a.yaml: tree is", "burch", "trees", ("birch", "oak")) == (
        "a.yaml: tree is 'burch'; did you mean birch? the trees are birch, oak"
    )
    assert unknown("tree is", "x", "trees", iter(("birch", "oak"))) == "tree is 'x'; the trees are birch, oak"
    assert closest("oka", ()) == ""
