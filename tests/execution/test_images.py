"""Which images a configuration reads, and what is found out about them before the first run."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dlperf_study.__main__ import main
from dlperf_study.core.errors import ImageDatasetError
from dlperf_study.execution import planning
from dlperf_study.execution.planning import image_dataset_obstacle
from dlperf_study.machines.cluster import Cluster
from dlperf_study.study.configuration import Configuration
from dlperf_study.training.image_datasets import number_of_classes
from tests.command_line import CLUSTER, STUDY
from tests.training.frameworks.launching import configuration
from tests.training.image_datasets import tiny

HERE = Cluster("here", 1, 2, "cpu", "a CPU", "local", is_this_machine=True)


@pytest.fixture(autouse=True)
def opened_anew() -> Iterator[None]:
    yield
    number_of_classes.cache_clear()


def reading(classes: int = 3) -> Configuration:
    return replace(configuration(), image_dataset="pictures", classes=classes)


def with_pictures(folder: Path) -> Cluster:
    return replace(HERE, image_datasets={"pictures": str(folder)})


def test_the_folder_is_that_of_the_cluster(tmp_path):
    cluster = with_pictures(tiny.class_folders(tmp_path))
    assert cluster.image_folder(reading()) == str(tmp_path)
    assert cluster.image_folder(configuration()) == ""
    assert image_dataset_obstacle(reading(), cluster) == image_dataset_obstacle(configuration(), cluster) == ""


def test_a_set_that_the_cluster_does_not_name_is_a_reason():
    obstacle = image_dataset_obstacle(reading(), replace(HERE, image_datasets={"imagenet": "/data/imagenet"}))
    expected = "image_dataset is pictures, but cluster here has no folder for it under image_datasets: it has imagenet"
    assert obstacle == expected


def test_a_set_that_is_not_made_yet_names_the_command(tmp_path, monkeypatch):
    monkeypatch.setattr(planning, "made_image_datasets", lambda: {"pictures": str(tmp_path / "pictures")})
    assert image_dataset_obstacle(reading(), with_pictures(tmp_path / "pictures")) == (
        "image_dataset pictures does not exist yet; `make data` makes it"
    )


def test_a_set_that_is_not_as_declared_is_an_error(tmp_path):
    with pytest.raises(ImageDatasetError, match=f"^image_dataset pictures: there is no folder {tmp_path}/away$"):
        image_dataset_obstacle(reading(), with_pictures(tmp_path / "away"))
    with pytest.raises(
        ImageDatasetError, match=rf"^image_dataset pictures: {tmp_path} has 3 classes, but classes is 10; "
    ):
        image_dataset_obstacle(reading(classes=10), with_pictures(tiny.class_folders(tmp_path)))


def test_of_other_machines_nothing_is_known_before_a_run(tmp_path):
    assert image_dataset_obstacle(reading(), replace(with_pictures(tmp_path / "away"), is_this_machine=False)) == ""


def test_damaged_images_end_a_command_with_one_line(place, tmp_path, capsys):
    folder = tiny.class_folders(tmp_path / "pictures")
    place.cluster_file.write_text(f"{CLUSTER}image_datasets: {{pictures: {folder}}}\n")
    place.study_file.write_text(
        STUDY.replace("[10]", "[3]").replace("classes: 10", "classes: 3\n    image_dataset: pictures")
    )
    (folder / "train" / "dog").mkdir()
    assert main(["run", str(place.study_file), "--cluster", str(place.cluster_file)]) == 1
    empty = f"{folder}/train/dog is an empty folder: a class needs at least one JPEG"
    assert capsys.readouterr().err == f"error: image_dataset pictures: {empty}\n"
