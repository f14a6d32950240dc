"""Columns on what was measured, and on which hardware and software."""

from dlperf_study.columns.column import (
    FLOAT,
    INT,
    MAYBE_FLAG,
    MAYBE_INT,
    RC,
    RCP,
    RP,
    STRING,
    C,
    Column,
    D,
    R,
    S,
    with_interval,
)

_RATIO = "of the ratio: from ratios within common rounds, of independent runs from the runs of both"


def _equal_within(name: str, label: str, role: str) -> Column:
    """Return the column on how far a configuration may be from its baseline or reference at most."""
    definition = f"x: the throughput is between 1/(1+x) and 1+x times that of the declared {role}, by its 95 % interval"
    return Column(f"{name}_equal_within", f"{label}, equal within", "", FLOAT, definition, C)


def _factor(part: str, definition: str) -> tuple[Column, ...]:
    """Return the columns of one of the four factors of an efficiency."""
    name, label = f"{part}_factor", f"{part.capitalize()} factor"
    return with_interval(
        Column(name, label, "", FLOAT, f"{definition}; one of four factors of the efficiency", C), _RATIO
    )


def _verdict(name: str, label: str, role: str) -> Column:
    """Return the column on what may be said of a configuration and its baseline or reference."""
    definition = (
        f"faster or slower than the declared {role}, after Holm over all that have the same one; else equal, if "
        "shown to differ by at most the study's precision, or 5 % where it has none; else not distinguishable; missing "
        "without an interval"
    )
    return Column(name, label, "", STRING, definition, C)


def _difference(part: str, label: str, meaning: str) -> tuple[Column, ...]:
    """Return the columns on how much longer a configuration takes than its reference."""
    name, label = f"{part}_difference_seconds", f"{label}, difference"
    definition = f"{meaning} − {meaning} of the declared reference, mean over common rounds; negative is faster"
    interval = "of the difference: from differences within common rounds"
    return with_interval(Column(name, label, "s", FLOAT, definition, C), interval)


OUTCOME = (
    Column("outcome", "Outcome", "", STRING, "how the run ended; completed only if every rank's log is complete", R),
    Column("reason", "Reason", "", STRING, "why it ended so", R),
    Column("started", "Started", "UTC", STRING, "when the run started", R),
    Column("run_seconds", "Run time", "s", FLOAT, "life of the training processes", R),
    Column("order", "Order", "", STRING, "order of the study's runs: rounds, blocks, or by hand", R),
    Column(
        "round",
        "Round",
        "",
        MAYBE_INT,
        "runs of one round were measured in turn, each configuration once; missing unless measured in its round",
        R,
    ),
    Column("position", "Position", "", MAYBE_INT, "place of the run in its round, from 1", R),
    Column("ranks_expected", "Ranks expected", "", INT, "rank logs that a complete run leaves", R),
    Column("ranks_seen", "Ranks seen", "", INT, "rank logs that are complete", R),
    Column("fingerprint", "Fingerprint", "", STRING, "of configuration, measuring code and library versions", R),
    Column("busy_cores_during", "Busy cores", "cores", FLOAT, "cores kept busy by other processes during the run", R),
    Column("waited_seconds", "Waited", "s", FLOAT, "how long the run waited for a quiet machine", R),
)

RATES = (
    *with_interval(
        Column(
            "throughput",
            "Throughput",
            "samples/s",
            FLOAT,
            "global batch × measured steps / makespan: the slowest rank's window with its drain, whole job; of "
            "ingested logs, samples / seconds of the steady part of what the program printed",
            RC,
        )
    ),
    *with_interval(
        Column(
            "sum_of_rank_rates",
            "Sum of trainers",
            "samples/s",
            FLOAT,
            "of asynchronous trainers: sum of their own rates, which the servers sustain while all train",
            RC,
        )
    ),
    *with_interval(
        Column(
            "mean_of_rates",
            "Mean of rates",
            "samples/s",
            FLOAT,
            "arithmetic mean of the slowest rank's per-step rates, of ingested logs of the printed rates that count; "
            "for comparison with published numbers only",
            RC,
        )
    ),
    *with_interval(
        Column(
            "baseline_throughput", "Baseline throughput", "samples/s", FLOAT, "throughput of the declared baseline", C
        ),
        "of the baseline",
    ),
    *with_interval(
        Column("speedup", "Speedup", "×", FLOAT, "throughput / throughput of the declared baseline", C), _RATIO
    ),
    *with_interval(Column("efficiency", "Efficiency", "", FLOAT, "speedup × baseline devices / devices", C), _RATIO),
    *_factor("computation", "mean computation per sample and device of the baseline / of this configuration"),
    *_factor("balance", "mean / slowest rank's computation, relative to the baseline's"),
    *_factor("input", "slowest rank's computation / computation + input wait, relative to the baseline's"),
    *_factor("communication", "computation + input wait / step, relative to the baseline's"),
    _verdict("baseline_verdict", "Against baseline", "baseline"),
    _equal_within("speedup", "Speedup", "baseline"),
)

COMPARISON = (
    *with_interval(
        Column(
            "reference_throughput",
            "Reference throughput",
            "samples/s",
            FLOAT,
            "throughput of the declared reference",
            C,
        ),
        "of the reference",
    ),
    *with_interval(
        Column(
            "relative_throughput",
            "Relative throughput",
            "×",
            FLOAT,
            "throughput / throughput of the declared reference",
            C,
        ),
        _RATIO,
    ),
    _verdict("verdict", "Against reference", "reference"),
    _equal_within("relative_throughput", "Relative throughput", "reference"),
    *_difference("step", "Step", "step"),
    *_difference("computation", "Computation", "computation"),
    *_difference("input", "Input wait", "input wait"),
    *_difference("exposed", "Exposed", "exposed communication"),
    Column(
        "difference_lies_in",
        "Lies in",
        "",
        STRING,
        "part of the step that makes it faster or slower: computation, input or exchange, if the interval of its "
        "difference excludes 0 and those of its excesses over the other differences too; several parts, if more than "
        "one difference excludes 0; else undecided; missing unless faster or slower",
        C,
    ),
)


MODEL = (
    Column(
        "parameters", "Parameters", "", MAYBE_INT, "trainable numbers on rank 0, of a sharded classifier its shard", RCP
    ),
    Column("gradient_bytes", "Gradient", "bytes", MAYBE_INT, "bytes of gradients rank 0 exchanges in a step", RC),
    Column("flops_per_sample", "FLOPs per sample", "FLOP", FLOAT, "forward and backward of one sample", RC),
)

#: What a run proves of its precision.
PRECISION = (
    Column(
        "computed_in",
        "Computed in",
        "",
        STRING,
        "number format of the first convolution or matrix product of a training step before all windows, as observed; "
        "float32 that reads 10 bits of the mantissa is tf32",
        R,
    ),
    Column(
        "loss_scale", "Loss scale", "", FLOAT, "factor of the loss when training ended; missing without loss scaling", R
    ),
    Column(
        "skipped_steps",
        "Skipped steps",
        "steps",
        MAYBE_INT,
        "measured steps that updated nothing, because a gradient was not finite; missing without loss scaling",
        R,
    ),
)

#: Hardware and software of a run.
ENVIRONMENT = (
    Column(
        "exchange",
        "Exchange",
        "",
        STRING,
        "how gradients travel: all_reduce, push_pull, synchronous_push_pull (ranks wait for each other) or none",
        R,
    ),
    Column("device", "Device", "", STRING, "cpu or gpu", RCP),
    Column("device_name", "Device name", "", STRING, "name that the device reports", RP),
    Column(
        "device_peak_flops",
        "Device peak",
        "FLOP/s",
        FLOAT,
        "peak of one device in the number format that was computed in, without sparsity: as in the cluster file, else "
        "in the data sheet of the device; missing if in neither",
        R,
    ),
    Column("device_peak_source", "Peak from", "", STRING, "the cluster file, or the data sheet of the device", R),
    Column("link", "Link", "", STRING, "what connects the devices; of ours, from the cluster file", RP),
    Column("host", "Host", "", STRING, "names of the hosts of the ranks", R),
    Column("launcher", "Launcher", "", STRING, "how processes were started: local, ssh, slurm or kubernetes", R),
    Column("addresses", "Addresses", "", STRING, "of each node: its address and network interface", R),
    Column("library", "Library", "", STRING, "framework library of the ranks", R),
    Column("library_version", "Library version", "", STRING, "its version", R),
    Column(
        "exchange_library",
        "Exchange library",
        "",
        STRING,
        "what exchanges gradients: NCCL with its version, or gloo, which has none; missing where neither does",
        R,
    ),
    Column("gpu_driver", "GPU driver", "", STRING, "version of the GPUs' driver; several if nodes differ", R),
    Column("cuda_version", "CUDA", "", STRING, "version that the library is built with; of runs on GPUs", R),
    Column("cudnn_version", "cuDNN", "", STRING, "version that the library is built with; of runs on GPUs", R),
    Column("cpu_model", "CPU", "", STRING, "model of the processor", R),
    Column("cores", "Cores", "", MAYBE_INT, "logical cores the run could use on its host", R),
    Column("memory_bytes", "Memory", "bytes", MAYBE_INT, "memory of the host", R),
    Column("python_version", "Python", "", STRING, "version of Python", R),
    Column("library_settings", "Variables", "", STRING, "variables of the environment that set libraries", R),
    Column("measuring_code", "Measuring code", "", STRING, "digest of the measuring code", R),
    Column("git_commit", "Commit", "", STRING, "commit of the measuring code", R),
    Column("git_dirty", "Uncommitted", "", MAYBE_FLAG, "files of the checkout, changed or new, were in no commit", R),
)

STEPS = (
    Column("rank", "Rank", "", INT, "which training process; −1: the whole job, of ingested logs", S),
    Column(
        "window",
        "Window",
        "",
        STRING,
        "warmup, computation_before, training, computation_after, exchange_<bytes> or exchange; of ingested logs, "
        "training counts, warmup comes before it, and left_out is within",
        S,
    ),
    Column("step", "Step", "", INT, "number of the step in its window, from 0; of ingested logs, since the start", S),
    Column("seconds", "Step time", "s", FLOAT, "duration of the step on this rank; of ingested logs, as printed", S),
    Column("loss", "Loss", "", FLOAT, "loss of the step on this rank; missing for an exchange or where not printed", S),
)

DIAGNOSTICS = (
    Column("subject", "Subject", "", STRING, "what the diagnostic is about: a column, a file or a window", D),
    Column(
        "severity",
        "Severity",
        "",
        STRING,
        "error: the number is missing or wrong; warning: read with care; note: worth knowing",
        D,
    ),
    Column("message", "Diagnostic", "", STRING, "what was measured, and what may explain it", D),
)
