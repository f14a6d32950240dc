"""Columns on the times of a step and of the windows around it, and on what they say of the exchange."""

from dlperf_study.columns.column import (
    FLOAT,
    MAYBE_INT,
    RC,
    STRING,
    C,
    Column,
    R,
    with_interval,
)


def _percentile(percentile: int) -> tuple[Column, ...]:
    """Return the columns on a percentile of the job's step times."""
    fewest = 100 // (100 - percentile)
    definition = (
        f"{percentile}th percentile of the steps of the window, each that of its slowest rank, with an "
        f"asynchronous server those of all ranks; missing below {fewest} steps"
    )
    name, label = f"step_p{percentile}_seconds", f"Step, p{percentile}"
    return with_interval(Column(name, label, "s", FLOAT, definition, RC))


TIMES = (
    *with_interval(
        Column(
            "compile_seconds",
            "Compilation",
            "s",
            FLOAT,
            "first training step of a compiled network, before all windows: tracing, compiling or reading what earlier "
            "runs of the configuration compiled, and the step itself; longest of the ranks; missing without a compiler",
            RC,
        )
    ),
    *with_interval(Column("step_seconds", "Step", "s", FLOAT, "slowest rank's window / measured steps", RC)),
    Column(
        "step_variation",
        "Step variation",
        "",
        FLOAT,
        "coefficient of variation of the slowest rank's steps: standard deviation / mean",
        R,
    ),
    *_percentile(50),
    *_percentile(95),
    *_percentile(99),
    *with_interval(
        Column(
            "computation_seconds",
            "Computation",
            "s",
            FLOAT,
            "step without exchange and input wait of the slowest rank, mean of before and after training; the step "
            "without input wait where nothing is exchanged",
            RC,
        )
    ),
    *with_interval(
        Column(
            "input_seconds",
            "Input wait",
            "s",
            FLOAT,
            "by how much waiting for batches lengthens a step: largest computation + wait of a rank − computation",
            RC,
        )
    ),
    *with_interval(
        Column(
            "input_rate",
            "Input rate",
            "samples/s",
            FLOAT,
            "what the data source delivers to all devices while nothing trains: global batch / slowest rank's time for "
            "a batch; missing where no step waits for batches",
            RC,
        )
    ),
    *with_interval(
        Column(
            "exposed_seconds",
            "Exposed communication",
            "s",
            FLOAT,
            "step − computation − input wait; below 0 where noise exceeds what is exposed",
            RC,
        )
    ),
    *with_interval(
        Column(
            "jitter_seconds",
            "Waiting for jitter",
            "s",
            FLOAT,
            "part of the exposed communication: mean over computation-only steps of the slowest rank − mean of the "
            "rank that is slowest on average; 0 with an asynchronous server, where ranks don't wait for each other",
            RC,
        )
    ),
    *with_interval(
        Column(
            "exchange_seconds", "Pure communication", "s", FLOAT, "slowest rank's exchange-only window / exchanges", RC
        )
    ),
    *with_interval(
        Column(
            "exchange_latency_seconds",
            "Exchange latency",
            "s",
            FLOAT,
            "seconds of an exchange of no bytes, fitted to exchanges alone of five sizes: t = latency + bytes / rate",
            RC,
        )
    ),
    *with_interval(
        Column(
            "exchange_bandwidth",
            "Fitted bandwidth",
            "bytes/s",
            FLOAT,
            "rate of the same fit × 2(n−1)/n: bus bandwidth without the latency",
            RC,
        )
    ),
    Column(
        "nccl_transports",
        "Transport",
        "",
        STRING,
        "how NCCL connects ranks, with the number of pairs: P2P, one GPU to another; SHM, by the host's memory; NET, "
        "by a network card, with GDRDMA without the host's memory",
        C,
    ),
    Column("nccl_path", "Path", "", STRING, "slowest path between two GPUs of a node, as nvidia-smi topo names it", C),
    Column("nccl_network", "Network cards", "", STRING, "what NCCL uses between nodes: its plugin, and the cards", C),
    Column("nccl_channels", "Channels", "", MAYBE_INT, "rings that NCCL uses at once, of ranks in some order", C),
    Column("nccl_rings", "Rings", "", STRING, "different orders of the ranks in these rings", C),
    Column("nccl_trees", "Trees", "", MAYBE_INT, "trees that NCCL uses for small messages", C),
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
    *with_interval(
        Column(
            "computation_to_communication",
            "Computation : communication",
            "",
            FLOAT,
            "computation / exposed communication; missing where none is exposed",
            C,
        ),
        "of the quotient of the two means, after Fieller; missing where the exposed communication can't be told from 0",
    ),
    *with_interval(
        Column(
            "overlap",
            "Overlap",
            "",
            FLOAT,
            "1 − (exposed communication − waiting for jitter) / pure communication; not given where threads share "
            "cores or jitter is not known; not comparable between frameworks",
            RC,
        )
    ),
    *with_interval(
        Column(
            "bus_bandwidth",
            "Bus bandwidth",
            "bytes/s",
            FLOAT,
            "bytes / pure communication × 2(n−1)/n; all-reduce on n > 1 devices only",
            RC,
        )
    ),
    *with_interval(
        Column("load_balance", "Load balance", "", FLOAT, "mean / maximum over ranks of the computation time", RC)
    ),
    *with_interval(
        Column(
            "mfu", "MFU", "", FLOAT, "throughput × FLOPs per sample / (devices × device peak); missing if unknown", RC
        )
    ),
    Column(
        "drain_seconds",
        "Drain",
        "s",
        FLOAT,
        "longest time for which updates of a rank were certainly pending after its window; it counts as training",
        R,
    ),
    Column("steps_warmed_up", "Warm-up", "steps", MAYBE_INT, "steps of the warm-up, the same number on every rank", R),
    Column(
        "warmup_end",
        "Warm-up ended",
        "",
        STRING,
        "steady: its last steps were alike on all ranks; limit: the time for it was over before; steps: only the "
        "warm-up steps were requested",
        R,
    ),
    Column("steps_measured", "Measured", "steps", MAYBE_INT, "steps of the training window, as many on every rank", R),
    Column("warmup_slowdown", "First step", "×", FLOAT, "first warm-up step / median measured step, slowest rank", R),
    Column(
        "steadiness",
        "Steadiness",
        "",
        STRING,
        "steady: the means of the window's halves, and of its first and last quarter and the rest, are shown to differ "
        "by at most 5 %, or the study's precision if that is smaller; not steady: they are shown to differ by more; "
        "else can't tell",
        R,
    ),
    Column(
        "further_steps",
        "Further steps",
        "",
        MAYBE_INT,
        "how many more steps, of ingested logs printed lines, would probably tell whether the window is steady; of "
        "fewer than 9 steps, whose noise is not known, those up to 50; 0 if it is steady, missing if it is not, or if "
        "no number of lines would tell",
        R,
    ),
    Column(
        "settled_at_step",
        "Settled at step",
        "",
        MAYBE_INT,
        "first measured step from which the window is steady; missing if that can't be shown of any half of it; of "
        "ingested logs, steps count from the start",
        R,
    ),
    Column("final_loss", "Final loss", "", FLOAT, "loss of the last measured step, mean over ranks", R),
)
