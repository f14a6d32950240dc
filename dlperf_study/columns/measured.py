"""Columns on what was measured, and where."""

from dlperf_study.columns.column import INT, MAYBE_FLAG, MAYBE_INT, RC, RCP, REAL, RP, TEXT, C, Column, P, R, S


def _difference(part: str, label: str, meaning: str) -> tuple[Column, ...]:
    """Return the columns on what a configuration takes more than its reference."""
    name, ends = f"{part}_difference_seconds", ("lower", "upper")
    median = f"{meaning} − {meaning} of the declared reference, medians of both; negative is faster"
    return (
        Column(name, f"{label}, difference", "s", REAL, median, C),
        *(
            Column(
                f"{name}_{side}",
                f"{label}, difference, {side}",
                "s",
                REAL,
                f"{end} end of the difference's interval, runs of both resampled",
                C,
            )
            for side, end in zip(("low", "high"), ends, strict=True)
        ),
    )


LIFE = (
    Column("outcome", "Outcome", "", TEXT, "how the run ended; completed only if every rank's log is whole", R),
    Column("reason", "Reason", "", TEXT, "why it ended so, in words", R),
    Column("started", "Started", "UTC", TEXT, "when the run started", R),
    Column("run_seconds", "Run time", "s", REAL, "life of the training processes", R),
    Column("ranks_expected", "Ranks expected", "", INT, "rank logs a whole run leaves", R),
    Column("ranks_seen", "Ranks seen", "", INT, "rank logs that are whole", R),
    Column("fingerprint", "Fingerprint", "", TEXT, "of configuration, measuring code and library versions", R),
    Column("busy_cores_during", "Busy cores", "cores", REAL, "cores kept busy by other processes during the run", R),
    Column("waited_seconds", "Waited", "s", REAL, "how long the run waited for a quiet machine", R),
)

RATES = (
    Column(
        "throughput",
        "Throughput",
        "samples/s",
        REAL,
        "global batch × measured steps / slowest rank's window, whole job; of ingested logs, samples / seconds of the "
        "steady part of what the program printed",
        RC,
    ),
    Column("throughput_low", "Throughput, low", "samples/s", REAL, "lower end of the throughput's interval", C),
    Column("throughput_high", "Throughput, high", "samples/s", REAL, "upper end of the throughput's interval", C),
    Column(
        "interval_coverage",
        "Coverage",
        "",
        REAL,
        "best chance that the interval holds the true median: min(0.95, 1 − 2^(1−runs)); missing below 3 runs",
        C,
    ),
    Column(
        "mean_of_rates",
        "Mean of rates",
        "samples/s",
        REAL,
        "arithmetic mean of the slowest rank's per-step rates, of ingested logs of the printed rates that count; for "
        "comparison with published numbers only",
        RC,
    ),
    Column("baseline_throughput", "Baseline throughput", "samples/s", REAL, "throughput of the declared baseline", C),
    Column("baseline_low", "Baseline throughput, low", "samples/s", REAL, "lower end of the baseline's interval", C),
    Column("baseline_high", "Baseline throughput, high", "samples/s", REAL, "upper end of the baseline's interval", C),
    Column("speedup", "Speedup", "×", REAL, "throughput / throughput of the declared baseline", C),
    Column("speedup_low", "Speedup, low", "×", REAL, "lower end of the ratio's interval, runs of both resampled", C),
    Column("speedup_high", "Speedup, high", "×", REAL, "upper end of the ratio's interval, runs of both resampled", C),
    Column("efficiency", "Efficiency", "", REAL, "speedup × baseline devices / devices", C),
    Column("efficiency_low", "Efficiency, low", "", REAL, "speedup_low × baseline devices / devices", C),
    Column("efficiency_high", "Efficiency, high", "", REAL, "speedup_high × baseline devices / devices", C),
)

COMPARISON = (
    Column(
        "reference_throughput", "Reference throughput", "samples/s", REAL, "throughput of the declared reference", C
    ),
    Column(
        "relative_throughput",
        "Relative throughput",
        "×",
        REAL,
        "throughput / throughput of the declared reference",
        C,
    ),
    Column(
        "relative_throughput_low",
        "Relative throughput, low",
        "×",
        REAL,
        "lower end of the ratio's interval, runs of both resampled",
        C,
    ),
    Column(
        "relative_throughput_high",
        "Relative throughput, high",
        "×",
        REAL,
        "upper end of the ratio's interval, runs of both resampled",
        C,
    ),
    Column(
        "verdict",
        "Against reference",
        "",
        TEXT,
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
        TEXT,
        "part of the step that makes it faster or slower: computation or exchange, if its interval excludes 0 and lies "
        "beyond the other's; both, if both exclude 0; else undecided; missing without a verdict or an interval",
        C,
    ),
)

TIMES = (
    Column("step_seconds", "Step", "s", REAL, "slowest rank's window / measured steps", RC),
    Column(
        "step_variation",
        "Step variation",
        "",
        REAL,
        "coefficient of variation of the slowest rank's steps: standard deviation / mean",
        R,
    ),
    Column(
        "computation_seconds",
        "Computation",
        "s",
        REAL,
        "slowest rank's computation-only window / its steps; the step itself where nothing is exchanged",
        RC,
    ),
    Column("exposed_seconds", "Exposed communication", "s", REAL, "step − computation, never below 0", RC),
    Column("exchange_seconds", "Pure communication", "s", REAL, "slowest rank's exchange-only window / exchanges", RC),
    Column("traced_step_seconds", "Traced step", "s", REAL, "a step of the traced run, which tracing slows", C),
    Column(
        "negotiation_seconds",
        "Negotiation",
        "s",
        REAL,
        "time of a traced step in which some gradient waited until all ranks had it; Horovod's timeline, rank 0",
        C,
    ),
    Column(
        "all_reduce_seconds",
        "All-reduce",
        "s",
        REAL,
        "time of a traced step in which some gradient was copied or reduced; Horovod's timeline, rank 0",
        C,
    ),
    Column(
        "computation_to_communication",
        "Computation : communication",
        "",
        REAL,
        "computation / exposed communication; missing where none is exposed",
        C,
    ),
    Column("overlap", "Overlap", "", REAL, "1 − exposed / pure communication", RC),
    Column(
        "bus_bandwidth",
        "Bus bandwidth",
        "bytes/s",
        REAL,
        "bytes / pure communication × 2(n−1)/n; all-reduce on n > 1 devices only",
        RC,
    ),
    Column("load_balance", "Load balance", "", REAL, "mean / maximum over ranks of the computation time", RC),
    Column("mfu", "MFU", "", REAL, "throughput × FLOPs per sample / (devices × device peak); missing if unknown", RC),
    Column("drain_seconds", "Drain", "s", REAL, "longest wait of a rank for late updates after its window", R),
    Column(
        "warmup_slowdown",
        "First step",
        "×",
        REAL,
        "first warm-up step / median measured step, slowest rank",
        R,
    ),
    Column(
        "settled_at_step",
        "Settled at step",
        "",
        MAYBE_INT,
        "first measured step from which the window is steady; missing if it never is or is too short to tell; of "
        "ingested logs, steps count from the start",
        R,
    ),
    Column("final_loss", "Final loss", "", REAL, "loss of the last measured step, mean over ranks", R),
)

#: What only ingested logs fill.
PRINTED = (
    Column("log_format", "Format", "", TEXT, "of ingested logs: the format they are in", R),
    Column("merge_rule", "Merged by", "", TEXT, "of ingested logs: how what ranks printed became the job's rate", R),
    Column("printed_lines", "Printed", "lines", MAYBE_INT, "of ingested logs: rates of the whole job that were had", R),
    Column("steady_lines", "Steady", "lines", MAYBE_INT, "of ingested logs: those of them that count", R),
    Column("steady_window", "Left out", "", TEXT, "of ingested logs: which of them do not count, and why", R),
    Column("fixed_window", "Fixed window", "", TEXT, "of ingested logs: the steps that DLPerf took of such logs", R),
    Column(
        "fixed_window_throughput",
        "Throughput, fixed window",
        "samples/s",
        REAL,
        "of ingested logs: samples / seconds of the steps that DLPerf took, whatever they hold",
        RC,
    ),
    Column(
        "fixed_window_mean_of_rates",
        "Mean of rates, fixed window",
        "samples/s",
        REAL,
        "of ingested logs: arithmetic mean of the rates printed at the steps that DLPerf took; what it published",
        RC,
    ),
)

MODEL = (
    Column(
        "parameters",
        "Parameters",
        "",
        MAYBE_INT,
        "trainable numbers on rank 0, of a sharded classifier its shard",
        RCP,
    ),
    Column("gradient_bytes", "Gradient", "bytes", MAYBE_INT, "bytes of gradients rank 0 exchanges in a step", RC),
    Column("flops_per_sample", "FLOPs per sample", "FLOP", REAL, "forward and backward of one sample", RC),
)

PLACE = (
    Column("exchange", "Exchange", "", TEXT, "how gradients travel: all_reduce, push_pull or none", R),
    Column("device", "Device", "", TEXT, "cpu or gpu", RP),
    Column("device_name", "Device name", "", TEXT, "what the device calls itself", RP),
    Column("device_peak_flops", "Device peak", "FLOP/s", REAL, "peak of one device, from the cluster file", R),
    Column("link", "Link", "", TEXT, "what connects the devices; of ours, from the cluster file", RP),
    Column("host", "Host", "", TEXT, "names of the hosts of the ranks", R),
    Column("launcher", "Launcher", "", TEXT, "how processes were started: local, ssh, slurm or kubernetes", R),
    Column("addresses", "Addresses", "", TEXT, "of each node: its address and network interface", R),
    Column("library", "Library", "", TEXT, "framework library of the ranks", R),
    Column("library_version", "Library version", "", TEXT, "its version", R),
    Column("cpu_model", "CPU", "", TEXT, "model of the processor", R),
    Column("cores", "Cores", "", MAYBE_INT, "logical cores the run could use on its host", R),
    Column("memory_bytes", "Memory", "bytes", MAYBE_INT, "memory of the host", R),
    Column("python_version", "Python", "", TEXT, "version of Python", R),
    Column("library_settings", "Variables", "", TEXT, "variables of the environment that set libraries", R),
    Column("git_commit", "Commit", "", TEXT, "commit of the measuring code", R),
    Column("git_dirty", "Uncommitted", "", MAYBE_FLAG, "files of the checkout, changed or new, were in no commit", R),
)

STEPS = (
    Column("rank", "Rank", "", INT, "which training process; −1: the whole job, of ingested logs", S),
    Column(
        "window",
        "Window",
        "",
        TEXT,
        "warmup, training, computation or exchange; of ingested logs, training counts, warmup comes before it, and "
        "left_out lies within",
        S,
    ),
    Column("step", "Step", "", INT, "number of the step in its window, from 0; of ingested logs, since the start", S),
    Column("seconds", "Step time", "s", REAL, "duration of the step on this rank; of ingested logs, as printed", S),
    Column("loss", "Loss", "", REAL, "loss of the step on this rank; missing for an exchange or where not printed", S),
)

COMPLAINTS = (
    Column("subject", "Subject", "", TEXT, "what is doubted: a column, a file or a window", P),
    Column("severity", "Severity", "", TEXT, "doubt: read with care; error: the number is missing or wrong", P),
    Column("message", "Complaint", "", TEXT, "what was seen, and what may explain it", P),
)
