"""What logs print most often, each in the words of our own columns."""

from dlperf_study.logs.format import Metric, Scope

JOB_RATE = Metric("throughput", "samples/s", Scope.JOB)
RANK_RATE = Metric("throughput", "samples/s", Scope.RANK)
RANK_STEP = Metric("step_seconds", "s", Scope.RANK)
RANK_READER = Metric("reader_seconds", "s", Scope.RANK)
LOSS = Metric("loss", "", Scope.RANK)
#: What the program itself sums up at its end, or at the end of an epoch.
JOB_TOTAL = Metric("overall_throughput", "samples/s", Scope.JOB)
RANK_TOTAL = Metric("overall_throughput", "samples/s", Scope.RANK)
#: Rates that programs call the same, whether they count images, sequences or tokens: no line says which.
UNITLESS_RATE = Metric("train_throughput", "", Scope.JOB)
UNITLESS_TOTAL = Metric("overall_train_throughput", "", Scope.JOB)
#: A number that another divides: seconds per ``count`` steps.
RANK_INTERVAL = Metric("step_seconds", "s", Scope.RANK, per="count")
#: The Unix time a line was printed at, where it says so outside its prefix.
UNIX_TIME = Metric("time_seconds", "s", Scope.JOB)
