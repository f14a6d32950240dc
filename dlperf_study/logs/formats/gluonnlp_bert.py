"""BERT pretraining of MXNet's gluon-nlp."""

from dlperf_study.logs.format import LOSS, Field, Format, Line, Merge, Metric, Scope, whole

_TOKENS = Metric("throughput", "tokens/s", Scope.RANK, factor=1000.0)
_LATENCY = Metric("step_seconds", "s", Scope.RANK, factor=1e-3)
_RATE = Metric("learning_rate", "", Scope.RANK)

FORMAT = Format(
    name="gluonnlp_bert",
    title="MXNet gluon-nlp BERT",
    program="dmlc/gluon-nlp 0.8 to 0.10, scripts/bert/pretraining_utils.py",
    lines=(
        Line(
            ("K tks/s",),
            rf"\[step {whole('step')}\]",
            (Field(LOSS, "mlm_loss"), Field(_TOKENS, "throughput"), Field(_RATE, "lr"), Field(_LATENCY, "latency")),
        ),
    ),
    rates=("throughput", "step_seconds"),
    merge=Merge.SUM,
    steps="steps since the start",
    traps=(
        "the rate counts tokens, not samples",
        "under Horovod every rank prints its own, and no line bears its rank",
        "evaluation prints the same line, with a learning rate of 0",
        "a process on several devices prints the sum of them: one line per step can't be made the job's rate",
    ),
    synchronous=False,
    # Its ``evaluate`` calls the same ``log`` without a trainer, of which the learning rate is printed: then as 0.
    zero_in_evaluation="learning_rate",
)
