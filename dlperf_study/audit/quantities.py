"""Quantities of results tables: names of metrics and conditions."""

from dlperf_study.study.configuration import FIELD_NAMES

THROUGHPUT, SPEEDUP, EFFICIENCY, RELATIVE = "throughput", "speedup", "efficiency", "relative_throughput"
#: Throughputs that everyday tables print. Tokens are no samples, and the throughput of one device is not that of the
#: job.
TOKENS, STEPS = "tokens_per_second", "steps_per_second"
SAMPLES_OF_DEVICE, TOKENS_OF_DEVICE = "samples_per_second_per_device", "tokens_per_second_per_device"
STEP, TASK, REPORT_GRADIENT = "step_seconds", "task_process_seconds", "report_gradient_seconds"
#: The time of a whole training, or of an epoch; only ratios compare it.
DURATION = "duration_seconds"
#: Times that a speedup may be of.
TIMES = (STEP, DURATION)
MFU, HFU, DEVICE_FLOPS, COMMUNICATION = "mfu", "hfu", "device_flops", "communication_share"
#: Conditions of a step: the samples of one pass of a copy of the network, and the passes before its weights change.
MICRO_BATCH, ACCUMULATION = "micro_batch", "accumulation"
#: A batch of a device or of the job: its table does not say which.
UNCLEAR_BATCH = "unclear_batch"
LAYERS, HIDDEN, VOCABULARY = "layers", "hidden_size", "vocabulary"
#: One unit of the last digit that is printed of a number of parameters.
PARAMETERS_STEP = "parameters_step"
STEP_UNIT = "step_unit"
#: Degrees of parallelism: tensors, layers and sequences are split, and each copy of the network has its data.
SPLITTING, COPIES = ("tp", "pp", "cp"), "dp"
#: A result whose quantity its table does not say.
UNNAMED, STANDARD_DEVIATION = "unnamed_result", "standard_deviation"
#: What only tables of others print, and no study measures.
EVERYDAY_METRICS = (TOKENS, STEPS, SAMPLES_OF_DEVICE, TOKENS_OF_DEVICE, DURATION, UNNAMED, STANDARD_DEVIATION)
THROUGHPUTS_OF_DEVICE = (SAMPLES_OF_DEVICE, TOKENS_OF_DEVICE)
THROUGHPUTS = (THROUGHPUT, TOKENS, *THROUGHPUTS_OF_DEVICE)
GEOMETRIC_MEAN = "geometric mean"
#: Columns that are equal for two numbers of the same configuration: our parameters, and those of publications.
CONFIGURATION = (*FIELD_NAMES, "program", "extra", "mode", "images", "world_size", "parameters")
CONFIGURATION += ("device", "device_name", "link", "instance", "hardware", "software")
#: Columns that change along a scaling curve.
SIZES = ("world_size", "nodes", "devices_per_node", "global_batch")
