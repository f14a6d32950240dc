"""BERT pretraining of MXNet's gluon-nlp."""

from dlperf_study.logs.format import LOSS, Field, Format, Line, Merge, Metric, MetricScope, integer

_TOKENS = Metric("throughput", "tokens/s", MetricScope.RANK, factor=1000.0)
_LATENCY = Metric("step_seconds", "s", MetricScope.RANK, factor=1e-3)
_RATE = Metric("learning_rate", "", MetricScope.RANK)

FORMAT = Format(
    name="gluonnlp_bert",
    title="MXNet gluon-nlp BERT",
    program="dmlc/gluon-nlp 0.8 to 0.10, scripts/bert/pretraining_utils.py",
    lines=(
        Line(
            ("K tks/s",),
            rf"\[step {integer('step')}\]",
            (Field(LOSS, "mlm_loss"), Field(_TOKENS, "throughput"), Field(_RATE, "lr"), Field(_LATENCY, "latency")),
        ),
    ),
    rates=("throughput", "step_seconds"),
    merge=Merge.SUM,
    steps="steps since the start",
    traps=(
        "the rate counts tokens, not samples",
        "under Horovod every rank prints its own, and no line names its rank",
        "evaluation prints the same line, with a learning rate of 0",
        "a process on several devices prints their sum: one line per step does not tell the job's rate",
    ),
    synchronous=False,
    # Its ``evaluate`` calls the same ``log`` without a trainer, and then the learning rate is printed as 0.
    zero_in_evaluation="learning_rate",
)
