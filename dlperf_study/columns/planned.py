"""Columns on what was asked for."""

from dlperf_study.columns.column import (
    ALL,
    FLAG,
    FLOAT,
    INT,
    MAYBE_FLAG,
    MAYBE_INT,
    PUBLISHED,
    RC,
    RCP,
    RS,
    STRING,
    C,
    Column,
    P,
)

IDENTITY = (
    Column("identity", "Configuration", "", STRING, "readable, unique name of the configuration", ALL),
    Column("repetition", "Repetition", "", MAYBE_INT, "which of the configuration's runs", (*RS, *P, *PUBLISHED)),
)

PARAMETERS = (
    Column("study", "Study", "", STRING, "name of the study", RC),
    Column("cluster", "Cluster", "", STRING, "name of the cluster file", RC),
    Column("framework", "Framework", "", STRING, "framework; of ours, with its way to exchange gradients", RCP),
    Column("strategy", "Strategy", "", STRING, "how the framework distributes the training", RC),
    Column("model", "Model", "", STRING, "name of the model", RCP),
    Column("quick", "Quick", "", FLAG, "a shrunken model for a first look, not for publication", RC),
    Column("image_size", "Image size", "pixels", MAYBE_INT, "height and width of an image", RCP),
    Column("classes", "Classes", "", MAYBE_INT, "number of classes of the classifier", RCP),
    Column("nodes", "Nodes", "", INT, "number of nodes", RCP),
    Column("devices_per_node", "Devices per node", "", INT, "training processes per node, one per device", RCP),
    Column("servers", "Servers", "", INT, "number of parameter servers, all nodes together", RCP),
    Column("batch_per_device", "Batch per device", "samples", INT, "samples per step and device", RCP),
    Column("precision", "Precision", "", STRING, "number format of the computation", RCP),
    Column("loss_scaling", "Loss scaling", "", STRING, "how losses are scaled in reduced precision", RCP),
    Column("compiler", "Compiler", "", STRING, "compiler between model and device", RCP),
    Column("memory_format", "Memory format", "", STRING, "order in which images and features lie in memory", RC),
    Column("gradient_compression", "Gradients travel as", "", STRING, "number format of exchanged gradients", RC),
    Column("fusion_mib", "Fusion", "MiB", MAYBE_INT, "largest fused buffer of gradients; -1: the library's own", RC),
    Column("cycle_time_ms", "Cycle time", "ms", FLOAT, "Horovod's cycle; -1: its own", RC),
    Column("hierarchical", "Hierarchical", "", MAYBE_FLAG, "whether Horovod reduces within a node first", RC),
    Column("optimizer", "Optimizer", "", STRING, "rule of the update", RC),
    Column("data_source", "Data source", "", STRING, "where samples come from", RCP),
    Column("classifier", "Classifier", "", STRING, "how the last layer lies on the devices", RCP),
    Column("sample_ratio", "Sample ratio", "", FLOAT, "share of the classes sampled in a step", RCP),
    Column("threads_per_device", "Threads per device", "", MAYBE_INT, "computing threads of a training process", RCP),
    Column("seed", "Seed", "", MAYBE_INT, "seed of weights and data", RC),
    Column("warmup_steps", "Warm-up steps", "steps", MAYBE_INT, "steps before the measured window", RC),
    Column("measured_steps", "Measured steps", "steps", MAYBE_INT, "steps of the measured window", RC),
    Column("computation_steps", "Computation steps", "steps", MAYBE_INT, "steps of the computation-only window", RC),
    Column("exchange_steps", "Exchange steps", "exchanges", MAYBE_INT, "exchanges of the pure-exchange window", RC),
    Column(
        "trace_steps", "Traced steps", "steps", MAYBE_INT, "steps of one more run, never counted, that is traced", RC
    ),
    Column("repeats", "Repeats", "runs", INT, "runs planned for each configuration", RC),
    Column("timeout_seconds", "Timeout", "s", MAYBE_INT, "longest life of a run", RC),
    Column("world_size", "Devices", "", INT, "nodes × devices per node; one training process each", RCP),
    Column("global_batch", "Global batch", "samples", INT, "batch per device × devices", RCP),
)

PLAN = (
    Column("unsupported_reason", "Unsupported because", "", STRING, "why it can't run here; missing if it can", C),
    Column("baseline_identity", "Baseline", "", STRING, "configuration its speedup is declared against", C),
    Column("is_baseline", "Is baseline", "", FLAG, "it is its own declared baseline", C),
    Column("reference_identity", "Reference", "", STRING, "configuration it is declared to be compared with", C),
    Column("is_reference", "Is reference", "", FLAG, "it is its own declared reference", C),
    Column("runs_planned", "Runs planned", "runs", INT, "repeats; 0 if unsupported", C),
    Column("runs_completed", "Runs completed", "runs", INT, "runs whose outcome is completed", C),
)
