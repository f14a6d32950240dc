"""Whether every node has the images of a cluster."""

from dataclasses import replace
from typing import Any

import pytest

from dlperf_study.machines.check import CheckStatus
from dlperf_study.machines.check.nodes import check_images
from dlperf_study.machines.cluster import Cluster

TWO = Cluster("two", 2, 4, "cpu", "a CPU", "ssh", hosts=("one", "two"), image_datasets={"pictures": "/data/pictures"})
HERE, AWAY = {"classes": 3}, {"error": "there is no folder /data/pictures"}


def facts(one: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    return {"one": {"image_datasets": {"pictures": one}}, "two": {"image_datasets": {"pictures": two}}}


@pytest.mark.parametrize(
    ("two", "status", "detail"),
    [
        (HERE, CheckStatus.OK, "3 classes in /data/pictures"),
        (AWAY, CheckStatus.MISSING, "two: there is no folder /data/pictures"),
        ({"classes": 4}, CheckStatus.MISSING, "one has 3 classes, two has 4 classes"),
    ],
)
def test_all_nodes_need_the_same_classes(two, status, detail):
    [result] = check_images(TWO, {}, facts(HERE, two))
    assert (result.subject, result.status, result.detail) == ("image dataset pictures", status, detail)


def test_a_set_that_nobody_made_has_no_row():
    assert [result.status for result in check_images(TWO, {}, facts(AWAY, AWAY))] == [CheckStatus.MISSING]
    made = TWO.image_datasets
    assert list(check_images(TWO, made, facts(AWAY, AWAY))) == []
    assert [result.status for result in check_images(TWO, made, facts(HERE, AWAY))] == [CheckStatus.MISSING]
    assert list(check_images(replace(TWO, image_datasets={}), made, facts(HERE, HERE))) == []
