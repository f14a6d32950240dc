"""The parameters of a configuration that say what is trained, and where; the others say how it is measured."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dlperf_study.study.parameter import IMAGES, SEQUENCES, Scope, declared, parameter
from dlperf_study.study.precision import COMPUTED_IN

PLAN, NETWORK, SELFTEST = Scope.PLAN, Scope.NETWORK, Scope.SELFTEST
#: Far above what is built: a number beyond these is a typing error, which would otherwise fill a disk, a memory or a
#: week before anybody notices.
MAX_NODES, MAX_DEVICES_PER_NODE = 10_000, 4_096
MAX_BATCH, MAX_TOKENS = 1_000_000, 100_000_000
#: The value of what a library decides if nobody tells it.
LIBRARYS_CHOICE = "default"
SELFTEST_ONLY = "[self-test](selftest.md) only"


@dataclass(frozen=True)
class TrainingParameters:
    """The parameters of what is trained and on what."""

    study: str = field(metadata=declared("Study", "study name", scope=PLAN, always_known=True))
    cluster: str = field(metadata=declared("Cluster", "cluster file", scope=PLAN))
    framework: str = field(
        metadata=declared("Framework", "framework with its communication method", always_known=True, published=True)
    )
    strategy: str = field(
        metadata=declared(
            "Strategy",
            "distribution strategy of the framework",
            note="`all_reduce`; `async` or `sync` (`paddle_ps`, `tensorflow_ps`), `local` (`paddle_ps`), `zero` "
            "(`torch_zero`, `paddle_zero`), `tensor` (`torch_tensor`), `pipeline` (`torch_pipeline`)",
        )
    )
    model: str = field(metadata=declared("Model", "model name", always_known=True, published=True))
    quick: bool = parameter(False, "Quick", "quick mode: shrunken, not for publication", scope=PLAN, always_known=True)
    image_size: int = parameter(
        224,
        "Image size",
        "image height and width",
        unit="pixels",
        bounds=(1, 16_384),
        published=True,
        samples=IMAGES,
    )
    classes: int = parameter(
        1000, "Classes", "classes of the classifier", bounds=(2, 100_000_000), published=True, samples=IMAGES
    )
    sequence_length: int = parameter(
        0,
        "Sequence length",
        "tokens per sample; 0: images",
        unit="tokens",
        bounds=(1, MAX_TOKENS),
        published=True,
        default_name="none",
        note="required for [sequence models](frameworks.md)",
        samples=SEQUENCES,
    )
    masked_positions: int = parameter(
        0,
        "Masked positions",
        "masked tokens to predict per sample; 0: none",
        unit="tokens",
        bounds=(1, MAX_TOKENS),
        default_name="none",
        note="BERT only, and required there, such as 20 of 128 tokens",
        samples=SEQUENCES,
    )
    nodes: int = parameter(1, "Nodes", "nodes", bounds=(1, MAX_NODES), always_known=True, published=True)
    devices_per_node: int = parameter(
        1,
        "Devices per node",
        "devices per node, one rank each",
        bounds=(1, MAX_DEVICES_PER_NODE),
        always_known=True,
        published=True,
    )
    parameter_servers: int = parameter(
        0,
        "Parameter servers",
        "parameter servers on all nodes",
        bounds=(0, MAX_NODES),
        always_known=True,
        published=True,
    )
    batch_per_device: int = parameter(
        32,
        "Batch per device",
        "local batch size, per model-parallel group if sharded",
        unit="samples",
        bounds=(1, MAX_BATCH),
        always_known=True,
        published=True,
        note="weak scaling only",
    )
    precision: str = parameter(
        "fp32",
        "Precision",
        "dtype of the computation",
        allowed_values=tuple(COMPUTED_IN),
        always_known=True,
        published=True,
        note="`fp32` switches TF32 off; `tf32`: GPUs; `amp_…`: mixed precision (Paddle: GPUs; TensorFlow on "
        "CPUs: `amp_bf16`); `…_o2`: also 16-bit parameters and gradients (Paddle)",
    )
    loss_scaling: str = parameter(
        "none",
        "Loss scaling",
        "loss scaling for reduced precision",
        allowed_values=("none", "dynamic", "static"),
        published=True,
        note="only `amp_fp16` and `amp_fp16_o2`; `static`: factor 128",
    )
    compiler: str = parameter(
        "none",
        "Compiler",
        "model compiler",
        allowed_values=("none", "to_static", "cinn", "torch_compile", "xla"),
        published=True,
        note="`to_static`, `cinn` (if in the wheel): `paddle_collective`; `torch_compile` (needs a C++ "
        "compiler): PyTorch, Horovod; `xla`: TensorFlow without parameter servers",
    )
    memory_format: str = parameter(
        "nchw",
        "Memory format",
        "memory layout of images and features",
        allowed_values=("nchw", "nhwc"),
        note="`nhwc` is channels last: PyTorch, Horovod, TensorFlow (required on CPUs), and Paddle models that "
        "pool to one pixel before the first linear layer",
        samples=IMAGES,
    )
    cudnn_autotune: str = parameter(
        LIBRARYS_CHOICE,
        "cuDNN autotuning",
        "cuDNN autotuning of convolutions; default: library's choice",
        default_name="by default",
        allowed_values=(LIBRARYS_CHOICE, "enabled", "disabled"),
        note="GPUs only",
    )
    gradient_compression: str = parameter(
        "none",
        "Gradient dtype",
        "dtype of communicated gradients",
        scope=NETWORK,
        allowed_values=("none", "fp16"),
        note="`fp16`: PyTorch, Horovod",
    )
    fusion_mib: int = parameter(
        -1,
        "Fusion",
        "maximum fused gradient buffer; -1: library's choice",
        default_name="by default",
        scope=NETWORK,
        unit="MiB",
        bounds=(0, 65_536),
        note="0: no fusion (Horovod, TensorFlow)",
    )
    cycle_time_ms: float = parameter(
        -1.0,
        "Cycle time",
        "cycle time of Horovod's background thread; -1: Horovod's choice",
        default_name="by default",
        scope=NETWORK,
        unit="ms",
        bounds=(0, 60_000),
    )
    hierarchical: bool = parameter(
        False, "Hierarchical", "Horovod reduces within each node first", scope=NETWORK, note="GPUs only"
    )
    optimizer: str = parameter(
        "sgd",
        "Optimizer",
        "optimizer",
        allowed_values=("sgd", "momentum", "adamw"),
        note="parameter servers: `sgd`",
    )
    fused_optimizer: str = parameter(
        LIBRARYS_CHOICE,
        "Parameter update",
        "one update call in total (fused), per operation (foreach) or per parameter (for_loop); default: "
        "library's choice",
        default_name="by default",
        allowed_values=(LIBRARYS_CHOICE, "fused", "foreach", "for_loop"),
        note="`foreach`: PyTorch, Horovod; `fused`: PyTorch, Horovod, Paddle's `momentum` without parameter servers",
    )
    data_loader: str = parameter("synthetic_device", "Data loader", "input pipeline", published=True)
    data_workers: int = parameter(
        -1,
        "Data workers",
        "loader processes per rank; -1: loader's choice",
        default_name="by default",
        bounds=(0, MAX_DEVICES_PER_NODE),
        note="0: the rank loads its batches",
    )
    prefetch_batches: int = parameter(
        -1,
        "Prefetch",
        "prefetch depth; -1: loader's choice",
        default_name="by default",
        unit="batches",
        bounds=(1, 1_000),
    )
    decoder_threads: int = parameter(
        -1,
        "Decoder threads",
        "decoder threads per rank; -1: loader's choice",
        default_name="by default",
        bounds=(1, MAX_DEVICES_PER_NODE),
        note="`dali` only",
        samples=IMAGES,
    )
    remote_producers: bool = parameter(
        False, "Remote producers", "the next node produces a rank's batches", note="`zmq` only"
    )
    image_dataset: str = parameter(
        "none",
        "Image dataset",
        "labelled images; none: synthetic",
        note="a name under `image_datasets` of the [cluster file](#cluster-files)",
        samples=IMAGES,
    )
    token_file: str = parameter(
        "none",
        "Token file",
        "file of 16-bit tokens; none: synthetic",
        note="only `mapped_tokens`; an absolute path, equal on every node",
        samples=SEQUENCES,
    )
    classifier: str = parameter(
        "replicated",
        "Classifier",
        "distribution of the last layer",
        allowed_values=("replicated", "sharded"),
        published=True,
        note="`sharded`: over the columns (ArcFace)",
        samples=IMAGES,
    )
    sample_ratio: float = parameter(
        1.0,
        "Sample ratio",
        "share of classes sampled per step",
        bounds=(0, 1),
        above_bound=True,
        published=True,
        note="below 1: `sharded` classifier",
        samples=IMAGES,
    )
    threads_per_device: int = parameter(
        1, "Threads per device", "CPU threads per rank", bounds=(1, MAX_DEVICES_PER_NODE), published=True
    )
    memory_limit_mib: int = parameter(
        0,
        "Memory limit",
        "memory limit per rank; 0: none",
        unit="MiB",
        default_name="no limit",
        bounds=(256, 16_777_216),
        note="CPUs only; [out of memory](#memory) beyond it",
    )
    cpu_limit: float = parameter(
        0.0,
        "CPU limit",
        "core limit per rank from warm-up on; 0: none",
        unit="cores",
        default_name="no limit",
        bounds=(0.01, MAX_DEVICES_PER_NODE),
        published=True,
        note="by control groups, as in Kubernetes; parameter servers are unlimited",
    )
    seed: int = parameter(0, "Seed", "seed of parameters and data", bounds=(0, 2**32 - 1))
    replica: int = parameter(
        0,
        "Replica",
        "number that distinguishes identical configurations",
        scope=SELFTEST,
        bounds=(0, 1_000),
        note=SELFTEST_ONLY,
    )
    injected_slowdown: float = parameter(
        0.0,
        "Injected slowdown",
        "busy wait after each step, as a share of the step",
        scope=SELFTEST,
        bounds=(0, 10),
        note=SELFTEST_ONLY,
    )
    slowed_rank: int = parameter(
        -1,
        "Slowed rank",
        "rank with the injected slowdown; -1: all",
        default_name="all ranks",
        scope=SELFTEST,
        bounds=(0, MAX_NODES * MAX_DEVICES_PER_NODE),
        note=SELFTEST_ONLY,
    )


#: Each rank logs the value that its library has after the first step, as far as it can be asked.
TUNED = ("memory_format", "cudnn_autotune", "fused_optimizer")
#: What earlier versions had too: their logs do not say it.
_UNOBSERVED_BEFORE = ("memory_format",)


def tuning_contradictions(configuration: TrainingParameters, observed: Mapping[str, str]) -> Iterator[str]:
    """Yield how a library's observed values differ from the requested ones."""
    for name in TUNED:
        requested, value = getattr(configuration, name), observed.get(name)
        if requested in (LIBRARYS_CHOICE, value) or (value is None and name in _UNOBSERVED_BEFORE):
            continue
        yield f"{name} is {requested}, but the library has {value or 'none that could be observed'}"
