"""NVIDIA's DeepLearningExamples, as dllogger prints them for readers: four programs, one line."""

from dlperf_study.logs.format import JOB_RATE, JOB_TOTAL, LOSS, VALIDATION, Fact, Field, Format, Line, Merge, integer

_SPACED = r"\s*:\s*"
_NUMBERS = (
    Field(LOSS, "train.loss", _SPACED),
    Field(JOB_RATE, "imgs_per_sec", _SPACED),
    Field(JOB_RATE, "throughput_train", _SPACED),
    Field(JOB_RATE, " train.total_ips", _SPACED),
    Field(JOB_RATE, " train.ips", _SPACED),
    Field(JOB_RATE, " total_ips", _SPACED),
    Field(LOSS, "total_loss", _SPACED),
)
#: The first letter is missing in some copies.
_STAMP = r"LL \d{4}-\d\d-\d\d \S+ - "
_ITERATION = rf"(?:(?:Training )?Epoch: {integer('epoch')} )?(?:Training )?Iteration: {integer('step')}\b"
_TUPLE = rf"\((?:{integer('epoch')}, )?{integer('step')},?\)"
#: The mean of an epoch, and that of the run; some programs put nothing before the latter.
_EPOCH = rf"Epoch: {integer('epoch')}\s++(?!Iteration)"
_RUN = r"(?:Summary:|\(\))?\s"
_VALIDATION = (Field(JOB_RATE, " val.total_ips", _SPACED), Field(JOB_RATE, " val.ips", _SPACED))
_SUMMARY = (
    Field(JOB_TOTAL, " train.total_ips", _SPACED),
    Field(JOB_TOTAL, " train.ips", _SPACED),
    Field(JOB_TOTAL, "throughput_train", _SPACED),
)
_NEEDLES = ("imgs_per_sec", " throughput_train", " total_ips", "train.total_ips", "train.ips")

FORMAT = Format(
    name="nvidia_dll",
    title="NVIDIA DeepLearningExamples",
    program="NVIDIA/DeepLearningExamples, ResNet50 for three libraries and BERT for TensorFlow, 2020 to 2021",
    lines=(
        Line(_NEEDLES, _STAMP + _ITERATION, _NUMBERS),
        Line(_NEEDLES, _STAMP + _TUPLE, _NUMBERS),
        Line(("val.total_ips", "val.ips"), _STAMP + _ITERATION, _VALIDATION, window=VALIDATION),
        Line(_NEEDLES, _STAMP + _EPOCH, _SUMMARY),
        Line(_NEEDLES, _STAMP + _RUN, _SUMMARY),
    ),
    rates=("throughput", "overall_throughput"),
    merge=Merge.ONE,
    steps="iterations: of the epoch in PyTorch, since the start in TensorFlow",
    traps=(
        "every rate is that of the whole job",
        "ResNet50 for TensorFlow does not print its first 20 iterations",
        "the rate of the first iterations of PyTorch is that of queueing work, not of doing it",
    ),
    facts=(
        Fact("world_size", r"world_size : (\d+)"),
        Fact("batch_size", r"batch_size : (\d+)"),
        Fact("model", r"arch : (\S+)"),
        # MXNet says float16 and needs no amp for it.
        Fact("amp", r"(?<!float16  )amp : (\w+)"),
        Fact("data_backend", r"data_backend : (\S+)"),
    ),
)
