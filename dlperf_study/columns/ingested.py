"""Columns on what the logs of other programs print."""

from dlperf_study.columns.column import FLOAT, MAYBE_INT, RC, STRING, C, Column, R, with_interval

#: Columns of ingested logs alone.
INGESTED = (
    Column("log_format", "Format", "", STRING, "of ingested logs: the format they are in", R),
    *with_interval(
        Column(
            "token_throughput",
            "Token throughput",
            "tokens/s",
            FLOAT,
            "of ingested logs: tokens / seconds of the steady part of what the program printed, whole job; speedups of "
            "a study in which nothing else is known are of this",
            RC,
        )
    ),
    *with_interval(
        Column(
            "baseline_token_throughput",
            "Baseline token throughput",
            "tokens/s",
            FLOAT,
            "token_throughput of the declared baseline, where no configuration has samples/s",
            C,
        ),
        "of the baseline",
    ),
    Column("printed_rate", "Printed as", "", STRING, "of ingested logs: unit and scope of the number that is read", R),
    Column("merge_rule", "Merged by", "", STRING, "of ingested logs: how what ranks printed became the job's rate", R),
    Column("printed_lines", "Printed", "lines", MAYBE_INT, "of ingested logs: number of rates of the whole job", R),
    Column("steady_lines", "Steady", "lines", MAYBE_INT, "of ingested logs: how many of these rates count", R),
    Column("steady_window", "Left out", "", STRING, "of ingested logs: which of these rates do not count, and why", R),
    Column(
        "behaviour",
        "Behaviour",
        "",
        STRING,
        "of ingested logs, without stalls: flat; warm-up, the last level of the rate is the fastest; slow-down, it is "
        "not; or no steady state, it is too short or not steady; missing where there are too few lines to tell",
        R,
    ),
    Column(
        "rate_levels",
        "Rate levels",
        "",
        STRING,
        "of ingested logs with several levels, without stalls and start-up: the rate of each and its steps",
        R,
    ),
    Column(
        "wall_throughput",
        "Throughput by the clock",
        "samples/s",
        FLOAT,
        "of ingested logs whose lines have times: samples / seconds from the end of the start-up to the last line, "
        "stalls included; missing if the times are too coarse or don't fit the printed rates",
        R,
    ),
    Column("fixed_window", "Fixed window", "", STRING, "of ingested logs: the steps that DLPerf took of such logs", R),
    *with_interval(
        Column(
            "fixed_window_throughput",
            "Throughput, fixed window",
            "samples/s",
            FLOAT,
            "of ingested logs: samples / seconds of the steps that DLPerf took, whatever they hold",
            RC,
        )
    ),
    *with_interval(
        Column(
            "fixed_window_mean_of_rates",
            "Mean of rates, fixed window",
            "samples/s",
            FLOAT,
            "of ingested logs: arithmetic mean of the rates printed at the steps that DLPerf took; what it published",
            RC,
        )
    ),
)
