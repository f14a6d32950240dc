"""Every column of the dataset: its name, label, unit, type, definition and tables.

``python -m dlperf_study.columns`` writes the registry to ``docs/columns.md``.
"""

from dataclasses import dataclass
from enum import StrEnum

from dlperf_study.paths import PROJECT

COLUMNS_PAGE = PROJECT / "docs" / "columns.md"


class Table(StrEnum):
    """The tables of the dataset."""

    RUNS = "runs"
    STEPS = "steps"
    CONFIGURATIONS = "configurations"
    COMPLAINTS = "complaints"


class Dtype(StrEnum):
    """What a column holds, as pandas names it; the capitalised ones may be missing, as may texts and reals."""

    TEXT = "str"
    CATEGORY = "category"
    INTEGER = "int64"
    OPTIONAL_INTEGER = "Int64"
    REAL = "float64"
    FLAG = "bool"
    OPTIONAL_FLAG = "boolean"


@dataclass(frozen=True)
class Column:
    """One column; the same name means the same thing in every table it stands in."""

    name: str
    label: str
    unit: str
    dtype: Dtype
    definition: str
    tables: tuple[Table, ...]

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers."""
        return self.dtype in (Dtype.INTEGER, Dtype.OPTIONAL_INTEGER, Dtype.REAL)

    def dtype_in(self, table: Table) -> Dtype:
        """Return its type in a table; texts repeat on every step, so there they are stored once."""
        return Dtype.CATEGORY if table is Table.STEPS and self.dtype is Dtype.TEXT else self.dtype


_R, _C = (Table.RUNS,), (Table.CONFIGURATIONS,)
_RC = (Table.RUNS, Table.CONFIGURATIONS)
_RS = (Table.RUNS, Table.STEPS)
_ALL = tuple(Table)
_S = (Table.STEPS,)
_P = (Table.COMPLAINTS,)
_TEXT, _INT, _MAYBE_INT, _REAL = Dtype.TEXT, Dtype.INTEGER, Dtype.OPTIONAL_INTEGER, Dtype.REAL
_FLAG, _MAYBE_FLAG = Dtype.FLAG, Dtype.OPTIONAL_FLAG

_IDENTITY = (
    Column("identity", "Configuration", "", _TEXT, "readable, unique name of the configuration", _ALL),
    Column("repetition", "Repetition", "", _MAYBE_INT, "which of the configuration's runs", (*_RS, *_P)),
)

_PARAMETERS = (
    Column("study", "Study", "", _TEXT, "name of the study", _RC),
    Column("cluster", "Cluster", "", _TEXT, "name of the cluster file", _RC),
    Column("framework", "Framework", "", _TEXT, "framework and its way to exchange gradients", _RC),
    Column("strategy", "Strategy", "", _TEXT, "how the framework distributes the training", _RC),
    Column("model", "Model", "", _TEXT, "name of the model", _RC),
    Column("quick", "Quick", "", _FLAG, "a shrunken model for a first look, not for publication", _RC),
    Column("image_size", "Image size", "pixels", _INT, "height and width of an image", _RC),
    Column("classes", "Classes", "", _INT, "number of classes of the classifier", _RC),
    Column("nodes", "Nodes", "", _INT, "number of nodes", _RC),
    Column("devices_per_node", "Devices per node", "", _INT, "training processes per node, one per device", _RC),
    Column("servers", "Servers", "", _INT, "number of parameter servers, all nodes together", _RC),
    Column("batch_per_device", "Batch per device", "samples", _INT, "samples per step and device", _RC),
    Column("precision", "Precision", "", _TEXT, "number format of the computation", _RC),
    Column("loss_scaling", "Loss scaling", "", _TEXT, "how losses are scaled in reduced precision", _RC),
    Column("compiler", "Compiler", "", _TEXT, "compiler between model and device", _RC),
    Column("optimizer", "Optimizer", "", _TEXT, "rule of the update", _RC),
    Column("data_source", "Data source", "", _TEXT, "where samples come from", _RC),
    Column("classifier", "Classifier", "", _TEXT, "how the last layer lies on the devices", _RC),
    Column("sample_ratio", "Sample ratio", "", _REAL, "share of the classes sampled in a step", _RC),
    Column("threads_per_device", "Threads per device", "", _INT, "computing threads of a training process", _RC),
    Column("seed", "Seed", "", _INT, "seed of weights and data", _RC),
    Column("warmup_steps", "Warm-up steps", "steps", _INT, "steps before the measured window", _RC),
    Column("measured_steps", "Measured steps", "steps", _INT, "steps of the measured window", _RC),
    Column("computation_steps", "Computation steps", "steps", _INT, "steps of the computation-only window", _RC),
    Column("exchange_steps", "Exchange steps", "exchanges", _INT, "exchanges of the pure-exchange window", _RC),
    Column("repeats", "Repeats", "runs", _INT, "runs planned for each configuration", _RC),
    Column("timeout_seconds", "Timeout", "s", _INT, "longest life of a run", _RC),
    Column("world_size", "Devices", "", _INT, "nodes × devices per node; one training process each", _RC),
    Column("global_batch", "Global batch", "samples", _INT, "batch per device × devices", _RC),
)

_LIFE = (
    Column("outcome", "Outcome", "", _TEXT, "how the run ended; completed only if every rank's log is whole", _R),
    Column("reason", "Reason", "", _TEXT, "why it ended so, in words", _R),
    Column("started", "Started", "UTC", _TEXT, "when the run started", _R),
    Column("run_seconds", "Run time", "s", _REAL, "life of the training processes", _R),
    Column("ranks_expected", "Ranks expected", "", _INT, "rank logs a whole run leaves", _R),
    Column("ranks_seen", "Ranks seen", "", _INT, "rank logs that are whole", _R),
    Column("fingerprint", "Fingerprint", "", _TEXT, "of configuration, measuring code and library versions", _R),
    Column("busy_cores_during", "Busy cores", "cores", _REAL, "cores kept busy by other processes during the run", _R),
    Column("waited_seconds", "Waited", "s", _REAL, "how long the run waited for a quiet machine", _R),
)

_PLAN = (
    Column("unsupported_reason", "Unsupported because", "", _TEXT, "why it can't run here; missing if it can", _C),
    Column("baseline_identity", "Baseline", "", _TEXT, "configuration its speedup is declared against", _C),
    Column("is_baseline", "Is baseline", "", _FLAG, "it is its own declared baseline", _C),
    Column("runs_planned", "Runs planned", "runs", _INT, "repeats; 0 if unsupported", _C),
    Column("runs_completed", "Runs completed", "runs", _INT, "runs whose outcome is completed", _C),
)

_RATES = (
    Column(
        "throughput",
        "Throughput",
        "samples/s",
        _REAL,
        "global batch × measured steps / slowest rank's window, whole job",
        _RC,
    ),
    Column("throughput_low", "Throughput, low", "samples/s", _REAL, "lower end of the throughput's interval", _C),
    Column("throughput_high", "Throughput, high", "samples/s", _REAL, "upper end of the throughput's interval", _C),
    Column(
        "interval_coverage",
        "Coverage",
        "",
        _REAL,
        "best chance that the interval holds the true median: min(0.95, 1 − 2^(1−runs)); missing below 3 runs",
        _C,
    ),
    Column(
        "mean_of_rates",
        "Mean of rates",
        "samples/s",
        _REAL,
        "arithmetic mean of the slowest rank's per-step rates; for comparison with published numbers only",
        _RC,
    ),
    Column("baseline_throughput", "Baseline throughput", "samples/s", _REAL, "throughput of the declared baseline", _C),
    Column("baseline_low", "Baseline throughput, low", "samples/s", _REAL, "lower end of the baseline's interval", _C),
    Column(
        "baseline_high", "Baseline throughput, high", "samples/s", _REAL, "upper end of the baseline's interval", _C
    ),
    Column("speedup", "Speedup", "×", _REAL, "throughput / throughput of the declared baseline", _C),
    Column("speedup_low", "Speedup, low", "×", _REAL, "lower end of the ratio's interval, runs of both resampled", _C),
    Column(
        "speedup_high", "Speedup, high", "×", _REAL, "upper end of the ratio's interval, runs of both resampled", _C
    ),
    Column("efficiency", "Efficiency", "", _REAL, "speedup × baseline devices / devices", _C),
    Column("efficiency_low", "Efficiency, low", "", _REAL, "speedup_low × baseline devices / devices", _C),
    Column("efficiency_high", "Efficiency, high", "", _REAL, "speedup_high × baseline devices / devices", _C),
)

_TIMES = (
    Column("step_seconds", "Step", "s", _REAL, "slowest rank's window / measured steps", _RC),
    Column(
        "step_variation",
        "Step variation",
        "",
        _REAL,
        "coefficient of variation of the slowest rank's steps: standard deviation / mean",
        _R,
    ),
    Column(
        "computation_seconds",
        "Computation",
        "s",
        _REAL,
        "slowest rank's computation-only window / its steps; the step itself where nothing is exchanged",
        _RC,
    ),
    Column("exposed_seconds", "Exposed communication", "s", _REAL, "step − computation, never below 0", _RC),
    Column(
        "exchange_seconds", "Pure communication", "s", _REAL, "slowest rank's exchange-only window / exchanges", _RC
    ),
    Column(
        "computation_to_communication",
        "Computation : communication",
        "",
        _REAL,
        "computation / exposed communication; missing where none is exposed",
        _C,
    ),
    Column("overlap", "Overlap", "", _REAL, "1 − exposed / pure communication", _RC),
    Column(
        "bus_bandwidth",
        "Bus bandwidth",
        "bytes/s",
        _REAL,
        "bytes / pure communication × 2(n−1)/n; all-reduce on n > 1 devices only",
        _RC,
    ),
    Column("load_balance", "Load balance", "", _REAL, "mean / maximum over ranks of the computation time", _RC),
    Column("mfu", "MFU", "", _REAL, "throughput × FLOPs per sample / (devices × device peak); missing if unknown", _RC),
    Column("drain_seconds", "Drain", "s", _REAL, "longest wait of a rank for late updates after its window", _R),
    Column(
        "warmup_slowdown",
        "First step",
        "×",
        _REAL,
        "first warm-up step / median measured step, slowest rank",
        _R,
    ),
    Column(
        "settled_at_step",
        "Settled at step",
        "step",
        _MAYBE_INT,
        "first measured step from which the window is steady; missing if it never is or is too short to tell",
        _R,
    ),
    Column("final_loss", "Final loss", "", _REAL, "loss of the last measured step, mean over ranks", _R),
)

_MODEL = (
    Column(
        "parameters",
        "Parameters",
        "",
        _MAYBE_INT,
        "trainable numbers on rank 0, of a sharded classifier its shard",
        _RC,
    ),
    Column("gradient_bytes", "Gradient", "bytes", _MAYBE_INT, "bytes of gradients rank 0 exchanges in a step", _RC),
    Column("flops_per_sample", "FLOPs per sample", "FLOP", _REAL, "forward and backward of one sample", _RC),
)

_PLACE = (
    Column("exchange", "Exchange", "", _TEXT, "how gradients travel: all_reduce, push_pull or none", _R),
    Column("device", "Device", "", _TEXT, "cpu or gpu", _R),
    Column("device_name", "Device name", "", _TEXT, "what the device calls itself", _R),
    Column("device_peak_flops", "Device peak", "FLOP/s", _REAL, "peak of one device, from the cluster file", _R),
    Column("link", "Link", "", _TEXT, "what connects the devices, from the cluster file", _R),
    Column("host", "Host", "", _TEXT, "names of the hosts of the ranks", _R),
    Column("library", "Library", "", _TEXT, "framework library of the ranks", _R),
    Column("library_version", "Library version", "", _TEXT, "its version", _R),
    Column("cpu_model", "CPU", "", _TEXT, "model of the processor", _R),
    Column("cores", "Cores", "", _MAYBE_INT, "logical cores the run could use on its host", _R),
    Column("memory_bytes", "Memory", "bytes", _MAYBE_INT, "memory of the host", _R),
    Column("python_version", "Python", "", _TEXT, "version of Python", _R),
    Column("git_commit", "Commit", "", _TEXT, "commit of the measuring code", _R),
    Column("git_dirty", "Uncommitted", "", _MAYBE_FLAG, "the measuring code had uncommitted changes", _R),
)

_STEPS = (
    Column("rank", "Rank", "", _INT, "which training process", _S),
    Column("window", "Window", "", _TEXT, "warmup, training, computation or exchange", _S),
    Column("step", "Step", "", _INT, "number of the step in its window, from 0", _S),
    Column("seconds", "Step time", "s", _REAL, "duration of the step on this rank", _S),
    Column("loss", "Loss", "", _REAL, "loss of the step on this rank; missing for an exchange", _S),
)

_COMPLAINTS = (
    Column("subject", "Subject", "", _TEXT, "what is doubted: a column, a file or a window", _P),
    Column("severity", "Severity", "", _TEXT, "doubt: read with care; error: the number is missing or wrong", _P),
    Column("message", "Complaint", "", _TEXT, "what was seen, and what may explain it", _P),
)

#: Every column by name, in the order of the tables.
COLUMNS = {
    column.name: column
    for column in (
        *_IDENTITY,
        *_PARAMETERS,
        *_LIFE,
        *_PLAN,
        *_RATES,
        *_TIMES,
        *_MODEL,
        *_PLACE,
        *_STEPS,
        *_COMPLAINTS,
    )
}


def columns_of(table: Table) -> tuple[Column, ...]:
    """Return the columns of a table, in order."""
    return tuple(column for column in COLUMNS.values() if table in column.tables)


def as_markdown() -> str:
    """Return ``docs/columns.md``: one section per table, one line per column."""
    return _HEADER + "".join(_section(table) for table in Table)


_HEADER = """# Columns

Generated by `python -m dlperf_study.columns`; do not edit. The tables lie as Parquet and CSV in
`outputs/<study>/dataset/`. In `configurations`, every measured column is the median over the completed runs.
"""


def _section(table: Table) -> str:
    lines = [f"| `{c.name}` | {c.unit} | {c.dtype_in(table)} | {c.definition} |\n" for c in columns_of(table)]
    return f"\n## `{table}`\n\n| column | unit | type | definition |\n|---|---|---|---|\n" + "".join(lines)


if __name__ == "__main__":
    COLUMNS_PAGE.write_text(as_markdown(), encoding="utf-8")
