"""Columns on what was measured, and on which hardware and software."""

from dlperf_study.columns.column import FLOAT, INT, MAYBE_FLAG, MAYBE_INT, RC, RCP, RP, STRING, C, Column, P, R, S

_RATIO_INTERVAL = "the ratio's interval, runs of both resampled"


def _difference(part: str, label: str, meaning: str) -> tuple[Column, ...]:
    """Return the columns on how much longer a configuration takes than its reference."""
    name, label = f"{part}_difference_seconds", f"{label}, difference"
    median = f"{meaning} − {meaning} of the declared reference, medians of both; negative is faster"
    interval = "the difference's interval, runs of both resampled"
    return (
        Column(name, label, "s", FLOAT, median, C),
        Column(f"{name}_low", f"{label}, low", "s", FLOAT, f"lower end of {interval}", C),
        Column(f"{name}_high", f"{label}, high", "s", FLOAT, f"upper end of {interval}", C),
    )


OUTCOME = (
    Column("outcome", "Outcome", "", STRING, "how the run ended; completed only if every rank's log is complete", R),
    Column("reason", "Reason", "", STRING, "why it ended so", R),
    Column("started", "Started", "UTC", STRING, "when the run started", R),
    Column("run_seconds", "Run time", "s", FLOAT, "life of the training processes", R),
    Column("ranks_expected", "Ranks expected", "", INT, "rank logs that a complete run leaves", R),
    Column("ranks_seen", "Ranks seen", "", INT, "rank logs that are complete", R),
    Column("fingerprint", "Fingerprint", "", STRING, "of configuration, measuring code and library versions", R),
    Column("busy_cores_during", "Busy cores", "cores", FLOAT, "cores kept busy by other processes during the run", R),
    Column("waited_seconds", "Waited", "s", FLOAT, "how long the run waited for a quiet machine", R),
)

RATES = (
    Column(
        "throughput",
        "Throughput",
        "samples/s",
        FLOAT,
        "global batch × measured steps / slowest rank's window, whole job; of ingested logs, samples / seconds of the "
        "steady part of what the program printed",
        RC,
    ),
    Column("throughput_low", "Throughput, low", "samples/s", FLOAT, "lower end of the throughput's interval", C),
    Column("throughput_high", "Throughput, high", "samples/s", FLOAT, "upper end of the throughput's interval", C),
    Column(
        "interval_coverage",
        "Coverage",
        "",
        FLOAT,
        "best chance that the interval holds the true median: min(0.95, 1 − 2^(1−runs)); missing below 3 runs",
        C,
    ),
    Column(
        "mean_of_rates",
        "Mean of rates",
        "samples/s",
        FLOAT,
        "arithmetic mean of the slowest rank's per-step rates, of ingested logs of the printed rates that count; for "
        "comparison with published numbers only",
        RC,
    ),
    Column("baseline_throughput", "Baseline throughput", "samples/s", FLOAT, "throughput of the declared baseline", C),
    Column("baseline_low", "Baseline throughput, low", "samples/s", FLOAT, "lower end of the baseline's interval", C),
    Column("baseline_high", "Baseline throughput, high", "samples/s", FLOAT, "upper end of the baseline's interval", C),
    Column("speedup", "Speedup", "×", FLOAT, "throughput / throughput of the declared baseline", C),
    Column("speedup_low", "Speedup, low", "×", FLOAT, f"lower end of {_RATIO_INTERVAL}", C),
    Column("speedup_high", "Speedup, high", "×", FLOAT, f"upper end of {_RATIO_INTERVAL}", C),
    Column("efficiency", "Efficiency", "", FLOAT, "speedup × baseline devices / devices", C),
    Column("efficiency_low", "Efficiency, low", "", FLOAT, "speedup_low × baseline devices / devices", C),
    Column("efficiency_high", "Efficiency, high", "", FLOAT, "speedup_high × baseline devices / devices", C),
)

COMPARISON = (
    Column(
        "reference_throughput", "Reference throughput", "samples/s", FLOAT, "throughput of the declared reference", C
    ),
    Column(
        "relative_throughput", "Relative throughput", "×", FLOAT, "throughput / throughput of the declared reference", C
    ),
    Column("relative_throughput_low", "Relative throughput, low", "×", FLOAT, f"lower end of {_RATIO_INTERVAL}", C),
    Column("relative_throughput_high", "Relative throughput, high", "×", FLOAT, f"upper end of {_RATIO_INTERVAL}", C),
    Column(
        "verdict",
        "Against reference",
        "",
        STRING,
        "faster or slower than the declared reference; not distinguishable where the ratio's interval holds 1",
        C,
    ),
    *_difference("step", "Step", "step"),
    *_difference("computation", "Computation", "computation"),
    *_difference("exposed", "Exposed", "exposed communication"),
    Column(
        "difference_lies_in",
        "Lies in",
        "",
        STRING,
        "part of the step that makes it faster or slower: computation or exchange, if its interval excludes 0 and is "
        "beyond the other's; both, if both exclude 0; else undecided; missing without a verdict or an interval",
        C,
    ),
)

TIMES = (
    Column("step_seconds", "Step", "s", FLOAT, "slowest rank's window / measured steps", RC),
    Column(
        "step_variation",
        "Step variation",
        "",
        FLOAT,
        "coefficient of variation of the slowest rank's steps: standard deviation / mean",
        R,
    ),
    Column(
        "computation_seconds",
        "Computation",
        "s",
        FLOAT,
        "slowest rank's computation-only window / its steps; the step itself where nothing is exchanged",
        RC,
    ),
    Column("exposed_seconds", "Exposed communication", "s", FLOAT, "step − computation, never below 0", RC),
    Column("exchange_seconds", "Pure communication", "s", FLOAT, "slowest rank's exchange-only window / exchanges", RC),
    Column("traced_step_seconds", "Traced step", "s", FLOAT, "a step of the traced run, which tracing slows", C),
    Column(
        "negotiation_seconds",
        "Negotiation",
        "s",
        FLOAT,
        "time of a traced step in which some gradient waited until all ranks had it; Horovod's timeline, rank 0",
        C,
    ),
    Column(
        "all_reduce_seconds",
        "All-reduce",
        "s",
        FLOAT,
        "time of a traced step in which some gradient was copied or reduced; Horovod's timeline, rank 0",
        C,
    ),
    Column(
        "computation_to_communication",
        "Computation : communication",
        "",
        FLOAT,
        "computation / exposed communication; missing where none is exposed",
        C,
    ),
    Column("overlap", "Overlap", "", FLOAT, "1 − exposed / pure communication", RC),
    Column(
        "bus_bandwidth",
        "Bus bandwidth",
        "bytes/s",
        FLOAT,
        "bytes / pure communication × 2(n−1)/n; all-reduce on n > 1 devices only",
        RC,
    ),
    Column("load_balance", "Load balance", "", FLOAT, "mean / maximum over ranks of the computation time", RC),
    Column("mfu", "MFU", "", FLOAT, "throughput × FLOPs per sample / (devices × device peak); missing if unknown", RC),
    Column("drain_seconds", "Drain", "s", FLOAT, "longest wait of a rank for late updates after its window", R),
    Column("warmup_slowdown", "First step", "×", FLOAT, "first warm-up step / median measured step, slowest rank", R),
    Column(
        "settled_at_step",
        "Settled at step",
        "",
        MAYBE_INT,
        "first measured step from which the window is steady; missing if it never is or is too short to tell; of "
        "ingested logs, steps count from the start",
        R,
    ),
    Column("final_loss", "Final loss", "", FLOAT, "loss of the last measured step, mean over ranks", R),
)

#: Columns of ingested logs alone.
INGESTED = (
    Column("log_format", "Format", "", STRING, "of ingested logs: the format they are in", R),
    Column("merge_rule", "Merged by", "", STRING, "of ingested logs: how what ranks printed became the job's rate", R),
    Column("printed_lines", "Printed", "lines", MAYBE_INT, "of ingested logs: number of rates of the whole job", R),
    Column("steady_lines", "Steady", "lines", MAYBE_INT, "of ingested logs: how many of these rates count", R),
    Column("steady_window", "Left out", "", STRING, "of ingested logs: which of these rates do not count, and why", R),
    Column("fixed_window", "Fixed window", "", STRING, "of ingested logs: the steps that DLPerf took of such logs", R),
    Column(
        "fixed_window_throughput",
        "Throughput, fixed window",
        "samples/s",
        FLOAT,
        "of ingested logs: samples / seconds of the steps that DLPerf took, whatever they hold",
        RC,
    ),
    Column(
        "fixed_window_mean_of_rates",
        "Mean of rates, fixed window",
        "samples/s",
        FLOAT,
        "of ingested logs: arithmetic mean of the rates printed at the steps that DLPerf took; what it published",
        RC,
    ),
)

MODEL = (
    Column(
        "parameters", "Parameters", "", MAYBE_INT, "trainable numbers on rank 0, of a sharded classifier its shard", RCP
    ),
    Column("gradient_bytes", "Gradient", "bytes", MAYBE_INT, "bytes of gradients rank 0 exchanges in a step", RC),
    Column("flops_per_sample", "FLOPs per sample", "FLOP", FLOAT, "forward and backward of one sample", RC),
)

#: Hardware and software of a run.
ENVIRONMENT = (
    Column("exchange", "Exchange", "", STRING, "how gradients travel: all_reduce, push_pull or none", R),
    Column("device", "Device", "", STRING, "cpu or gpu", RP),
    Column("device_name", "Device name", "", STRING, "name that the device reports", RP),
    Column("device_peak_flops", "Device peak", "FLOP/s", FLOAT, "peak of one device, from the cluster file", R),
    Column("link", "Link", "", STRING, "what connects the devices; of ours, from the cluster file", RP),
    Column("host", "Host", "", STRING, "names of the hosts of the ranks", R),
    Column("launcher", "Launcher", "", STRING, "how processes were started: local, ssh, slurm or kubernetes", R),
    Column("addresses", "Addresses", "", STRING, "of each node: its address and network interface", R),
    Column("library", "Library", "", STRING, "framework library of the ranks", R),
    Column("library_version", "Library version", "", STRING, "its version", R),
    Column("cpu_model", "CPU", "", STRING, "model of the processor", R),
    Column("cores", "Cores", "", MAYBE_INT, "logical cores the run could use on its host", R),
    Column("memory_bytes", "Memory", "bytes", MAYBE_INT, "memory of the host", R),
    Column("python_version", "Python", "", STRING, "version of Python", R),
    Column("library_settings", "Variables", "", STRING, "variables of the environment that set libraries", R),
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
        "warmup, training, computation or exchange; of ingested logs, training counts, warmup comes before it, and "
        "left_out is within",
        S,
    ),
    Column("step", "Step", "", INT, "number of the step in its window, from 0; of ingested logs, since the start", S),
    Column("seconds", "Step time", "s", FLOAT, "duration of the step on this rank; of ingested logs, as printed", S),
    Column("loss", "Loss", "", FLOAT, "loss of the step on this rank; missing for an exchange or where not printed", S),
)

DIAGNOSTICS = (
    Column("subject", "Subject", "", STRING, "what the diagnostic is about: a column, a file or a window", P),
    Column("severity", "Severity", "", STRING, "warning: read with care; error: the number is missing or wrong", P),
    Column("message", "Diagnostic", "", STRING, "what was measured, and what may explain it", P),
)
