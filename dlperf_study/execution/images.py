"""The image sets of a study: whether the cluster has them, and whether they are what its configurations need."""

from functools import cache
from pathlib import Path

from dlperf_study.cluster.cluster import Cluster
from dlperf_study.errors import ImageSetError
from dlperf_study.image_sets.opening import decode_some, open_image_set, require_classes
from dlperf_study.image_sets.photographs import made_image_sets
from dlperf_study.plan.plan import Plan
from dlperf_study.study.configuration import PARAMETERS, Configuration

NO_IMAGES = PARAMETERS["image_set"].default
#: How many images of a set are decoded before the first run of a study, in two seconds.
DECODED_BEFORE_A_STUDY = 1000


def image_folder(configuration: Configuration, cluster: Cluster) -> str:
    """Return the folder of the images that a configuration reads, on every node; empty if it reads none."""
    return cluster.image_sets.get(configuration.image_set, "")


def image_set_obstacle(configuration: Configuration, cluster: Cluster) -> str:
    """Return why the cluster can't have the images of a configuration; empty if it has, or if only its nodes know.

    Raises ImageSetError if they are on this machine and damaged, or of other classes than the configuration: that is an
    error of the user, while a set that is nowhere may be on another cluster.
    """
    name, folder = configuration.image_set, image_folder(configuration, cluster)
    if name == NO_IMAGES:
        return ""
    if not folder:
        names = ", ".join(cluster.image_sets)
        return f"image_set is {name}, but cluster {cluster.title} has no folder for it under image_sets: it has {names}"
    # Of other machines, each node is asked at the start of a run.
    if not cluster.is_this_machine:
        return ""
    if folder == made_image_sets().get(name) and not Path(folder).exists():
        return f"image_set {name} is not made yet; `make data` makes it"
    try:
        require_classes(Path(folder), _number_of_classes(folder), configuration.classes)
    except ImageSetError as error:
        raise ImageSetError(f"image_set {name}: {error}") from error
    return ""


def decode_images(plan: Plan, cluster: Cluster) -> None:
    """Decode some images of every set that the plan reads, if they are on this machine.

    Raises ImageSetError for the first that can't be decoded.
    """
    if not cluster.is_this_machine:
        return
    folders = {entry.configuration.image_set: image_folder(entry.configuration, cluster) for entry in plan.runnable}
    for name, folder in folders.items():
        if name != NO_IMAGES:
            try:
                decode_some(open_image_set(Path(folder)), DECODED_BEFORE_A_STUDY)
            except ImageSetError as error:
                raise ImageSetError(f"image_set {name}: {error}") from error


@cache
def _number_of_classes(folder: str) -> int:
    """Return how many classes a folder has; it is opened once, and every file of it is looked at."""
    return len(open_image_set(Path(folder)).classes)
