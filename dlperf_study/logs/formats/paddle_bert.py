"""PaddlePaddle 1.x BERT and ERNIE pretraining."""

from dlperf_study.logs.format import LOSS, VALIDATION, Fact, Field, Format, Line, Merge, Metric, MetricScope, integer

_SPEED = Metric("steps_per_second", "steps/s", MetricScope.JOB)
_POSITION = rf"epoch: {integer('epoch')}, step: {integer('step')},"
_NUMBERS = (Field(LOSS, " loss"), Field(_SPEED, "speed"))

FORMAT = Format(
    name="paddle_bert",
    title="PaddlePaddle 1.x BERT",
    program="PaddlePaddle/models 1.6 to 1.8, PaddleNLP/pretrain_language_models/BERT/train.py",
    lines=(
        Line(
            ("progress: ",),
            rf"(?:epoch: {integer('epoch')}, )?progress: \d+/\d+, step: {integer('step')},(?! ave )",
            _NUMBERS,
        ),
        Line(
            ("ation_set]",),
            r"\[validation_set\] " + _POSITION,
            _NUMBERS,
            (),
            VALIDATION,
        ),
    ),
    rates=("steps_per_second",),
    merge=Merge.COPIES,
    steps="steps since the start",
    traps=(
        "the speed is already multiplied by the number of trainers, one per node: times batch per device × devices per "
        "node it is the job's rate; multiplying by all devices counts the nodes twice",
    ),
    facts=(
        Fact("devices_per_node", r"Device count (\d+)"),
        Fact("trainers", r"trainers_num:?\s*(\d+)"),
        Fact("batch_size", r"batch_size\s*[:=]\s*(\d+)"),
    ),
)
