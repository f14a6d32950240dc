"""Columns on what a run used besides time: energy, memory of devices and hosts, clocks and temperatures."""

from dlperf_study.columns.column import FLOAT, MAYBE_INT, RC, STRING, Column, R, with_interval

_SAMPLED = "of the samples of the training window"

#: Of configurations the most of all runs.
SAMPLED_PEAKS = (
    Column(
        "peak_device_bytes",
        "Peak of the GPU",
        "bytes",
        MAYBE_INT,
        f"most memory of one GPU in use, by NVML, {_SAMPLED}: of all processes, and what libraries keep for later",
        RC,
    ),
    Column(
        "peak_host_bytes",
        "Peak of the host",
        "bytes",
        MAYBE_INT,
        f"most memory of one host in use, {_SAMPLED}: of all processes, page cache left out",
        RC,
    ),
    Column(
        "gpu_temperature",
        "Temperature",
        "°C",
        MAYBE_INT,
        "highest of all GPUs and samples of the training window, by NVML",
        RC,
    ),
)

ENERGY = (
    *with_interval(
        Column(
            "energy_per_sample",
            "Energy per sample",
            "J/sample",
            FLOAT,
            "mean power / throughput: of the GPU boards alone, or, of runs on CPUs, of the processor packages of all "
            "nodes with ranks, whoever else uses them; no fans, power supplies and, on GPUs, no host",
            RC,
        )
    ),
    *with_interval(
        Column(
            "mean_power",
            "Power",
            "W",
            FLOAT,
            "what the energy counters of all devices of the run added between the first and the last sample of the "
            "training window / the time between these; missing where one of them does not count or there are fewer "
            "than 3 samples",
            RC,
        )
    ),
    Column("energy_of", "Energy of", "", STRING, "what the energy counters cover: GPU boards or CPU packages", R),
    Column("energy_obstacle", "Why no energy", "", STRING, "why the energy of the run is not reported", R),
)

GPU_STATE = (
    *with_interval(
        Column(
            "gpu_utilisation",
            "GPU busy",
            "",
            FLOAT,
            f"share of the time in which anything ran on the GPU, by NVML; mean {_SAMPLED} and over GPUs",
            RC,
        )
    ),
    *with_interval(
        Column("sm_clock", "SM clock", "MHz", FLOAT, f"clock of the GPU's cores; mean {_SAMPLED} and over GPUs", RC)
    ),
    *with_interval(
        Column(
            "memory_clock",
            "Memory clock",
            "MHz",
            FLOAT,
            f"clock of the GPU's memory; mean {_SAMPLED} and over GPUs",
            RC,
        )
    ),
    *with_interval(
        Column(
            "clock_limited_share",
            "Clock limited",
            "",
            FLOAT,
            f"share {_SAMPLED} in which power or temperature kept the clock of a GPU lower, by NVML; of the GPU with "
            "most",
            RC,
        )
    ),
    Column("clock_limits", "Clock limits", "", STRING, "what kept it lower, with the share of the samples", R),
    Column(
        "foreign_processes",
        "Foreign processes",
        "",
        MAYBE_INT,
        "how many processes that are not of the run used its GPUs in the training window, by NVML; missing where "
        "process ids can't be told apart, as in a container",
        R,
    ),
)

SAMPLING = (
    Column(
        "telemetry_samples",
        "Samples",
        "",
        MAYBE_INT,
        "samples of the training window, about one a second; of the node with fewest",
        R,
    ),
    Column("sampling_seconds", "Sampling", "s", FLOAT, "time that the guard took for a sample, mean over all", R),
)

RESOURCES = (*ENERGY, *SAMPLED_PEAKS, *GPU_STATE, *SAMPLING)
