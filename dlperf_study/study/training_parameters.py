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
SELFTEST_ONLY = "only for studies of the [self-test](selftest.md)"


@dataclass(frozen=True)
class TrainingParameters:
    """The parameters of what is trained and on what."""

    study: str = field(metadata=declared("Study", "name of the study", scope=PLAN, always_known=True))
    cluster: str = field(metadata=declared("Cluster", "name of the cluster file", scope=PLAN))
    framework: str = field(
        metadata=declared("Framework", "framework and its gradient communication", always_known=True, published=True)
    )
    strategy: str = field(
        metadata=declared(
            "Strategy",
            "distribution of the training by the framework",
            note="`async` and `sync` of `paddle_ps` and `tensorflow_ps`, `local` of `paddle_ps`, "
            "`zero` of `torch_zero` and `paddle_zero`, `tensor` of `torch_tensor`, "
            "`pipeline` of `torch_pipeline`; else `all_reduce`",
        )
    )
    model: str = field(metadata=declared("Model", "name of the model", always_known=True, published=True))
    quick: bool = parameter(
        False, "Quick", "a shrunken model for a first look, not for publication", scope=PLAN, always_known=True
    )
    image_size: int = parameter(
        224,
        "Image size",
        "height and width of an image",
        unit="pixels",
        bounds=(1, 16_384),
        published=True,
        samples=IMAGES,
    )
    classes: int = parameter(
        1000, "Classes", "number of classes of the classifier", bounds=(2, 100_000_000), published=True, samples=IMAGES
    )
    sequence_length: int = parameter(
        0,
        "Sequence length",
        "tokens per sample; 0: a sample is an image",
        unit="tokens",
        bounds=(1, MAX_TOKENS),
        published=True,
        default_name="none",
        note="required for models of [sequences](transformers.md)",
        samples=SEQUENCES,
    )
    masked_positions: int = parameter(
        0,
        "Masked positions",
        "masked tokens per sample that the model predicts; 0: none",
        unit="tokens",
        bounds=(1, MAX_TOKENS),
        default_name="none",
        note="required for BERT, and for BERT only: 20 of 128 tokens and 80 of 512 in its publication",
        samples=SEQUENCES,
    )
    nodes: int = parameter(1, "Nodes", "number of nodes", bounds=(1, MAX_NODES), always_known=True, published=True)
    devices_per_node: int = parameter(
        1,
        "Devices per node",
        "training processes per node, one per device",
        bounds=(1, MAX_DEVICES_PER_NODE),
        always_known=True,
        published=True,
    )
    parameter_servers: int = parameter(
        0,
        "Parameter servers",
        "number of parameter servers, all nodes together",
        bounds=(0, MAX_NODES),
        always_known=True,
        published=True,
    )
    batch_per_device: int = parameter(
        32,
        "Batch per device",
        "samples per step and device; per model-parallel group if the model is sharded",
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
        note="`fp32`: TF32 is off; `tf32`: GPUs only; `amp_…`: mixed precision, in Paddle only on GPUs, in "
        "TensorFlow on a CPU only `amp_bf16`; `…_o2`: 16-bit parameters and gradients too (Paddle only)",
    )
    loss_scaling: str = parameter(
        "none",
        "Loss scaling",
        "loss scaling in reduced precision",
        allowed_values=("none", "dynamic", "static"),
        published=True,
        note="only for `amp_fp16` and `amp_fp16_o2`; `static` is a factor of 128, as in DLPerf's ResNet-50 of 2020",
    )
    compiler: str = parameter(
        "none",
        "Compiler",
        "compiler of the model",
        allowed_values=("none", "to_static", "cinn", "torch_compile", "xla"),
        published=True,
        note="`to_static`, and `cinn` if the wheel has it: `paddle_collective`; `torch_compile`, which needs a"
        " C++ compiler: PyTorch and Horovod; `xla`: TensorFlow without parameter servers",
    )
    memory_format: str = parameter(
        "nchw",
        "Memory format",
        "memory layout of images and features",
        allowed_values=("nchw", "nhwc"),
        note="`nhwc` (channels last): PyTorch, Horovod, Paddle for models that pool to one pixel before the "
        "first linear layer, and TensorFlow, which supports only `nhwc` on CPUs",
        samples=IMAGES,
    )
    cudnn_autotune: str = parameter(
        LIBRARYS_CHOICE,
        "cuDNN autotuning",
        "whether each convolution tries the algorithms of cuDNN and keeps the fastest; default: the library's choice",
        default_name="by default",
        allowed_values=(LIBRARYS_CHOICE, "enabled", "disabled"),
        note="GPUs only",
    )
    gradient_compression: str = parameter(
        "none",
        "Gradient dtype",
        "dtype of gradients in the communication",
        scope=NETWORK,
        allowed_values=("none", "fp16"),
        note="`fp16`: PyTorch and Horovod only",
    )
    fusion_mib: int = parameter(
        -1,
        "Fusion",
        "maximum size of a fused gradient buffer; -1: the library's choice",
        default_name="by default",
        scope=NETWORK,
        unit="MiB",
        bounds=(0, 65_536),
        note="0: no fusion (Horovod and TensorFlow only)",
    )
    cycle_time_ms: float = parameter(
        -1.0,
        "Cycle time",
        "cycle time of Horovod's background thread; -1: Horovod's choice",
        default_name="by default",
        scope=NETWORK,
        unit="ms",
        bounds=(0, 60_000),
        note="Horovod only",
    )
    hierarchical: bool = parameter(
        False, "Hierarchical", "whether Horovod reduces within a node first", scope=NETWORK, note="Horovod on GPUs only"
    )
    optimizer: str = parameter(
        "sgd",
        "Optimizer",
        "optimizer of the update",
        allowed_values=("sgd", "momentum", "adamw"),
        note="only `sgd` with parameter servers",
    )
    fused_optimizer: str = parameter(
        LIBRARYS_CHOICE,
        "Parameter update",
        "implementation of the update: one call for all parameters (fused), one call per operation "
        "(foreach), or one parameter after the other (for_loop); default: the library's choice",
        default_name="by default",
        allowed_values=(LIBRARYS_CHOICE, "fused", "foreach", "for_loop"),
        note="`foreach`: PyTorch and Horovod; `fused`: PyTorch, Horovod, and Paddle's `momentum` without "
        "parameter servers",
    )
    data_loader: str = parameter("synthetic_device", "Data loader", "input pipeline", published=True)
    data_workers: int = parameter(
        -1,
        "Data workers",
        "worker processes of the data loader per rank; -1: the data loader's choice",
        default_name="by default",
        bounds=(0, MAX_DEVICES_PER_NODE),
        note="0: the rank loads its batches itself",
    )
    prefetch_batches: int = parameter(
        -1,
        "Prefetch",
        "prefetch depth; -1: the data loader's choice",
        default_name="by default",
        unit="batches",
        bounds=(1, 1_000),
    )
    decoder_threads: int = parameter(
        -1,
        "Decoder threads",
        "decoder threads per rank; -1: the data loader's choice",
        default_name="by default",
        bounds=(1, MAX_DEVICES_PER_NODE),
        note="`dali` only",
        samples=IMAGES,
    )
    remote_producers: bool = parameter(
        False, "Remote producers", "whether the batches of a rank are produced on the next node", note="`zmq` only"
    )
    image_dataset: str = parameter(
        "none",
        "Image dataset",
        "labelled images that the data loader reads; none: synthetic images",
        note="a name under `image_datasets` of the [cluster file](data.md)",
        samples=IMAGES,
    )
    token_file: str = parameter(
        "none",
        "Token file",
        "file of 16-bit tokens that the data loader reads; none: synthetic tokens",
        note="only with `data_loader: mapped_tokens`; an [absolute path](transformers.md#data), equal on every node",
        samples=SEQUENCES,
    )
    classifier: str = parameter(
        "replicated",
        "Classifier",
        "distribution of the last layer over the devices",
        allowed_values=("replicated", "sharded"),
        published=True,
        note="`sharded`: each device has some of its columns (ArcFace only)",
        samples=IMAGES,
    )
    sample_ratio: float = parameter(
        1.0,
        "Sample ratio",
        "share of the classes sampled per step",
        bounds=(0, 1),
        above_bound=True,
        published=True,
        note="below 1 only with a `sharded` classifier",
        samples=IMAGES,
    )
    threads_per_device: int = parameter(
        1, "Threads per device", "CPU threads of a training process", bounds=(1, MAX_DEVICES_PER_NODE), published=True
    )
    memory_limit_mib: int = parameter(
        0,
        "Memory limit",
        "memory limit of a training process; 0: no limit",
        unit="MiB",
        default_name="no limit",
        bounds=(256, 16_777_216),
        note="on CPUs only; a process that needs more is [out of memory](#memory)",
    )
    cpu_limit: float = parameter(
        0.0,
        "CPU limit",
        "core limit of a training process from its warm-up on; 0: no limit",
        unit="cores",
        default_name="no limit",
        bounds=(0.01, MAX_DEVICES_PER_NODE),
        published=True,
        note="set by [control groups](clusters.md#a-share-of-a-core), as in Kubernetes; parameter servers have"
        " no limit",
    )
    seed: int = parameter(0, "Seed", "seed of parameters and data", bounds=(0, 2**32 - 1))
    replica: int = parameter(
        0,
        "Replica",
        "distinguishes copies of the same configuration",
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
        "rank with the injected slowdown; -1: all ranks",
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
