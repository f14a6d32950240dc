"""What every framework refuses: values that are not built, a model, a data loader or a device that do not fit."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from dlperf_study.core.errors import StudyFileError, UnsupportedError
from dlperf_study.core.wording import value_text
from dlperf_study.study.configuration import PARAMETERS, Configuration, parameters_in_scope
from dlperf_study.study.parameter import SEQUENCES, Scalar, Scope
from dlperf_study.study.precision import SCALED
from dlperf_study.study.training_parameters import LIBRARYS_CHOICE
from dlperf_study.training import data_loaders, models
from dlperf_study.training.models._sequences import SequenceModel

#: The values of each parameter that are built; all others are listed as unsupported, never replaced.
Values = dict[str, tuple[Scalar | None, ...]]
#: Compilers by value: what returns why the library can't compile so here, or nothing; None: it always can.
Compilers = Mapping[str, Callable[[], str] | None]
#: What is built for every framework: of each parameter with allowed values the default, unless this names more.
BUILT_FOR_ALL: Values = {
    **{name: (parameter.default,) for name, parameter in PARAMETERS.items() if parameter.allowed_values},
    "optimizer": ("sgd", "momentum"),
    "classifier": ("replicated", "sharded"),
}
#: What is built of each library where ranks have the whole model, and where they divide it or its state.
BUILT_FOR_LIBRARIES: Values = BUILT_FOR_ALL | {
    "precision": ("fp32", "tf32", "amp_fp16", "amp_bf16"),
    "loss_scaling": ("none", "dynamic", "static"),
    "memory_format": ("nchw", "nhwc"),
    "cudnn_autotune": PARAMETERS["cudnn_autotune"].allowed_values,
}
BUILT_FOR_SHARDING: Values = {
    "precision": ("fp32", "tf32", "amp_bf16"),
    "loss_scaling": ("none",),
    "compiler": ("none",),
    "classifier": ("replicated",),
}
#: Parameters without allowed values that every framework reads, itself or by its model.
READ_BY_ALL = {
    *("image_size", "classes", "nodes", "devices_per_node", "parameter_servers", "batch_per_device", "sample_ratio"),
    *("threads_per_device", "memory_limit_mib", "cpu_limit", "seed", "data_loader"),
}
#: All others without allowed values, each with its default: the only value that is supported where nothing reads it.
DEFAULT_SETTINGS = {
    name: parameter.default
    for name, parameter in parameters_in_scope(Scope.WORKLOAD, Scope.NETWORK).items()
    if not parameter.allowed_values and parameter.default is not None and name not in READ_BY_ALL
}


def unsuitable_parts(
    configuration: Configuration,
    library: str,
    built: Values,
    settings: tuple[str, ...] = (),
    refused: Mapping[Any, str] = MappingProxyType({}),
) -> Iterator[str]:
    """Yield each value that is not built, and why model or data loader can't be used with a library.

    ``settings`` are the names in ``DEFAULT_SETTINGS`` that the framework reads; ``refused`` are the values that it
    refuses for a specific reason.
    """
    framework = configuration.framework
    for name, choices in built.items():
        value = getattr(configuration, name)
        if value not in choices:
            listed = ", ".join(map(value_text, choices))
            reason = f"{name} {value_text(value)} is not supported by {framework} (supported: {listed})"
            yield refused.get(value) or reason
    model, source = configuration.model, configuration.data_loader
    read_by_model = models.load(model).settings if model in models.names() else ()
    read_by_source = data_loaders.load(source).settings if source in data_loaders.names() else ()
    for name, default in DEFAULT_SETTINGS.items():
        value = getattr(configuration, name)
        if value != default and name not in (*settings, *read_by_model, *read_by_source):
            yield f"{name} is {value_text(value)}, but none of {framework}, {model} and {source} has such a setting"
    yield from model_obstacles(configuration, library)
    yield from data_loader_obstacles(configuration, library)


def server_obstacles(configuration: Configuration) -> Iterator[str]:
    """Yield that all-reduce has no servers."""
    if configuration.parameter_servers:
        yield f"parameter_servers is {configuration.parameter_servers}, but all-reduce has no parameter servers"


def sequence_obstacles(configuration: Configuration) -> Iterator[str]:
    """Yield that a framework is built for images alone."""
    if configuration.samples == SEQUENCES:
        yield f"model {configuration.model} trains on sequences, but {configuration.framework} is for images only"


def sequence_model(configuration: Configuration) -> SequenceModel | None:
    """Return the model if it is a transformer, or None."""
    model = models.load(configuration.model) if configuration.model in models.names() else None
    if isinstance(model, SequenceModel):
        return model
    return None


def image_obstacles(configuration: Configuration, name: str) -> Iterator[str]:
    """Yield that ``name`` is for transformers, and the model isn't."""
    if configuration.model in models.names() and not sequence_model(configuration):
        yield f"model {configuration.model} trains on images, but {name} is for transformers only"


def micro_batch_obstacles(configuration: Configuration) -> Iterator[str]:
    """Yield that a batch can't be divided into its micro-batches."""
    batch, parts = configuration.batch_per_device, configuration.micro_batches
    if batch % parts:
        yield f"batch_per_device {batch} is not a multiple of micro_batches {parts}"


def device_obstacles(configuration: Configuration, device: str) -> Iterator[str]:
    """Yield why a device does not compute so."""
    precision, scaling, autotuning = configuration.precision, configuration.loss_scaling, configuration.cudnn_autotune
    if scaling != "none" and precision not in SCALED:
        yield f"loss_scaling {value_text(scaling)} is for precision {' and '.join(SCALED)}, not {value_text(precision)}"
    if precision == "tf32" and device != "gpu":
        yield "precision tf32 needs the tensor cores of NVIDIA GPUs; the device is a CPU"
    if autotuning != LIBRARYS_CHOICE and device != "gpu":
        yield f"cudnn_autotune {autotuning}: cuDNN is a library for NVIDIA GPUs; the device is a CPU"


def require_compiler(configuration: Configuration, compilers: Compilers) -> None:
    """Raise UnsupportedError if a compiler does not work here."""
    why = compilers.get(configuration.compiler)
    if why and (obstacle := why()):
        raise UnsupportedError(f"compiler {configuration.compiler}: {obstacle}")


def model_obstacles(configuration: Configuration, library: str) -> Iterator[str]:
    """Yield each reason why the model can't be built."""
    try:
        model = models.load(configuration.model)
    except StudyFileError as error:
        yield str(error)
    else:
        yield from model.obstacles(configuration, library)


def data_loader_obstacles(configuration: Configuration, library: str) -> Iterator[str]:
    """Yield each reason why the data loader can't be used."""
    try:
        source = data_loaders.load(configuration.data_loader)
    except StudyFileError as error:
        yield str(error)
        return
    if source.libraries and library not in source.libraries:
        yield f"data_loader {source.name} is not supported with {library} (supported: {', '.join(source.libraries)})"
    if configuration.samples not in source.samples:
        yield f"data_loader {source.name} delivers {' and '.join(source.samples)}, not {configuration.samples}"
    else:
        yield from source.obstacles(configuration, library)


def missing_further_package(version: str) -> str:
    """Return which further package is not installed, or nothing."""
    *_, name, last = ("", "", *version.split())
    if last == str(None):
        return name
    return ""


def missing_library(library: str, version: str | None, remedy: str) -> Iterator[str]:
    """Yield what is not installed by ``Framework.version_in``, and the remedy."""
    if version is None or (library := missing_further_package(version)):
        here = f"`{remedy}` installs it in this project's own environment"
        yield f"{library} is not installed in the Python that the cluster file names for it; {here}"
