"""What PaddlePaddle's programs have in common: the costs of a step, and the configuration printed before the first."""

from dlperf_study.logs.format import RANK_RATE, RANK_READER, RANK_STEP, Field

#: Old versions print the first of these, newer ones the others.
COSTS = (
    Field(RANK_STEP, "elapse"),
    Field(RANK_STEP, "batch_cost"),
    Field(RANK_READER, "reader_cost"),
    Field(RANK_RATE, "ips"),
)
#: The batch of training in a printed configuration of Paddle, which also states those of validation and inference.
TRAIN_BATCH = (
    r"(?i:Train)[ \t]*:[ \t]*\n"
    r"(?:(?!.*\b(?:Eval|Infer|VALID|TEST)[ \t]*:).*\n){0,99}?"
    r".*\bbatch_size[ \t]*:[ \t]*(\d+)"
)
