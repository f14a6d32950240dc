"""Formats of MXNet, MindSpore and OneFlow."""

from dlperf_study.logs import printed
from dlperf_study.logs.format import Fact, Field, Format, Line, Merge
from dlperf_study.logs.printed import MetricScope, PrintedMetric, integer, number

MXNET_SPEEDOMETER = Format(
    name="mxnet_speedometer",
    title="MXNet Speedometer",
    program="apache/mxnet, python/mxnet/callback.py, and forks of it",
    lines=(
        Line(
            ("Speed: ",),
            rf"(?:Node\[{integer('rank')}\]\s+)?(?:Epoch|Iter)\s?\[{integer('epoch')}\]\s+Batch\s?\[(?:\d+-)?{integer('step')}\]",
            (Field(printed.RANK_THROUGHPUT, "Speed"),),
        ),
    ),
    throughput_metrics=("throughput",),
    merge=Merge.SUM,
    steps="batches of the epoch",
    traps=("throughput of one process: one rank under Horovod, else all its devices; no line tells which",),
    synchronous=False,
    dlperf_steps=(20, 120),
)

_GLUON_TOKENS = PrintedMetric("throughput", "tokens/s", MetricScope.RANK, factor=1000.0)
_LEARNING_RATE = PrintedMetric("learning_rate", "", MetricScope.RANK)

GLUONNLP_BERT = Format(
    name="gluonnlp_bert",
    title="MXNet gluon-nlp BERT",
    program="dmlc/gluon-nlp 0.8 to 0.10, scripts/bert/pretraining_utils.py",
    lines=(
        Line(
            ("K tks/s",),
            rf"\[step {integer('step')}\]",
            (
                Field(printed.LOSS, "mlm_loss"),
                Field(_GLUON_TOKENS, "throughput"),
                Field(_LEARNING_RATE, "lr"),
                Field(printed.RANK_STEP.in_milliseconds, "latency"),
            ),
        ),
    ),
    throughput_metrics=("throughput", "step_seconds"),
    merge=Merge.SUM,
    steps="steps since the start",
    traps=(
        "counts tokens; every Horovod rank prints its own",
        "evaluation lines have learning rate 0",
        "a process on several devices prints their sum",
    ),
    synchronous=False,
    # Its ``evaluate`` calls the same ``log`` without a trainer, and then the learning rate is printed as 0.
    zero_in_evaluation="learning_rate",
    dlperf_steps=(20, 120),
)

_DEVICE_THROUGHPUT = PrintedMetric("throughput_per_device", "samples/s", MetricScope.RANK)

INSIGHTFACE_PARTIAL_FC = Format(
    name="insightface_partial_fc",
    title="InsightFace PartialFC",
    program="deepinsight/insightface, recognition/partial_fc/mxnet/callbacks.py",
    lines=(
        Line(
            (" Rank:",),
            rf"(?:rank-id:{integer('rank')}:.*?)?Iter:\s*{integer('step')}\b",
            (Field(_DEVICE_THROUGHPUT, "Rank"), Field(printed.JOB_THROUGHPUT, "Total"), Field(printed.LOSS, "[loss]")),
        ),
    ),
    throughput_metrics=("throughput",),
    merge=Merge.COPIES,
    steps="steps since the start",
    traps=(
        "'it' means samples",
        "'Total' is rank 0's throughput × devices",
    ),
    dlperf_steps=(20, 120),
)

_MINDSPORE_EPOCH = PrintedMetric("epoch_seconds", "s", MetricScope.RANK, factor=1e-3)

MINDSPORE = Format(
    name="mindspore",
    title="MindSpore",
    program="mindspore-ai/mindspore, mindspore/train/callback (TimeMonitor, LossMonitor)",
    lines=(
        Line(
            ("loss is",),
            rf"epoch:\s*{integer('epoch')}\s+step:\s*{integer('step')},\s*loss is\s+\[?{number('loss')}",
            captured=(printed.LOSS,),
        ),
        Line(
            ("per step time",),
            rf"(?i:epoch time):?\s*{number('epoch_seconds')}(?: ms)?,\s*(?=per step time)",
            (Field(printed.RANK_STEP.in_milliseconds, "per step time"),),
            (_MINDSPORE_EPOCH,),
        ),
    ),
    throughput_metrics=("step_seconds",),
    merge=Merge.SLOWEST,
    steps="steps of the epoch, from 1; a time is the mean of its epoch",
    traps=(
        "the first epoch contains compilation",
        "with data sinking, an epoch is one call",
    ),
    carries_steps=True,
)

_ONEFLOW_SETTINGS = (
    Fact("batch_per_device", r"batch_size_per_device = (\d+)"),
    Fact("devices_per_node", r"gpu_num_per_node = (\d+)"),
    Fact("nodes", r"num_nodes = (\d+)"),
)


def _oneflow_numbers(loss: str, throughput: str) -> tuple[Field, ...]:
    """Return loss, throughput and Unix time of a line."""
    return Field(printed.LOSS, loss), Field(printed.JOB_THROUGHPUT, throughput), Field(printed.UNIX_TIME, " ", "")


_RESNET50_NUMBERS = _oneflow_numbers("loss", "samples/s")


def _resnet50_head(window: str) -> str:
    return rf"{window}: epoch {integer('epoch')}, iter {integer('step')},"


ONEFLOW_RESNET50 = Format(
    name="oneflow_resnet50",
    title="OneFlow ResNet50",
    program="Oneflow-Inc/OneFlow-Benchmark, Classification/cnns",
    lines=(
        Line(("train: epoch",), _resnet50_head("train"), _RESNET50_NUMBERS),
        Line(("validation: epoch",), _resnet50_head("validation"), _RESNET50_NUMBERS, training=False),
    ),
    throughput_metrics=("throughput",),
    merge=Merge.ONE,
    steps="batches of the epoch, from 1",
    traps=("the last number of a line is the Unix time",),
    facts=(Fact("model", r"model = (\w+)"), *_ONEFLOW_SETTINGS),
    dlperf_steps=(20, 120),
)

ONEFLOW_BERT = Format(
    name="oneflow_bert",
    title="OneFlow BERT",
    program="Oneflow-Inc/OneFlow-Benchmark, LanguageModeling/BERT",
    lines=(Line(("mlm_loss: ",), rf"step: {integer('step')},", _oneflow_numbers("total_loss", "throughput")),),
    throughput_metrics=("throughput",),
    merge=Merge.ONE,
    steps="steps since the start, from 0",
    traps=("sequences/s of the job",),
    facts=_ONEFLOW_SETTINGS,
    dlperf_steps=(20, 120),
)

ONEFLOW_INSIGHTFACE = Format(
    name="oneflow_insightface",
    title="OneFlow InsightFace",
    program="Oneflow-Inc/oneflow_face, insightface_train.py",
    lines=(
        Line(
            ("train: iter",),
            rf"train: iter {integer('step')},",
            (Field(printed.LOSS, "loss"), Field(printed.JOB_THROUGHPUT, "throughput")),
        ),
    ),
    throughput_metrics=("throughput",),
    merge=Merge.ONE,
    steps="steps since the start, from 1",
    traps=("throughput of the job",),
    dlperf_steps=(20, 120),
)

FORMATS = (
    *(MXNET_SPEEDOMETER, GLUONNLP_BERT, INSIGHTFACE_PARTIAL_FC),
    *(MINDSPORE, ONEFLOW_RESNET50, ONEFLOW_BERT, ONEFLOW_INSIGHTFACE),
)
