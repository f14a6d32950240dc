"""BERT pretraining of MXNet's gluon-nlp."""

from dlperf_study.logs.format import Field, Format, Line, Merge, Metric, Scope, whole
from dlperf_study.logs.quantities import LOSS

_TOKENS = Metric("throughput", "tokens/s", Scope.RANK, factor=1000.0)
_LATENCY = Metric("step_seconds", "s", Scope.RANK, factor=1e-3)

FORMAT = Format(
    name="gluonnlp_bert",
    title="MXNet gluon-nlp BERT",
    program="dmlc/gluon-nlp 0.8 to 0.10, scripts/bert/pretraining_utils.py",
    lines=(
        Line(
            ("K tks/s",),
            rf"\[step {whole('step')}\]",
            (Field(LOSS, "mlm_loss"), Field(_TOKENS, "throughput"), Field(_LATENCY, "latency")),
        ),
    ),
    rates=("throughput", "step_seconds"),
    merge=Merge.SUM,
    steps="steps since the start",
    traps=(
        "the rate counts tokens, not samples",
        "under Horovod every rank prints its own, and no line bears its rank",
        "a process on several devices prints the sum of them: one line per step can't be made the job's rate",
    ),
    synchronous=False,
)
