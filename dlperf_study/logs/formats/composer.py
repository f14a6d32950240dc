"""MosaicML Composer: a block of lines for each batch."""

from dlperf_study.logs.format import JOB_RATE, JOB_TOKENS, LOSS, Format, Line, Merge, integer, number

FORMAT = Format(
    name="composer",
    title="Composer",
    program="mosaicml/composer, callbacks/speed_monitor.py and loggers/console_logger.py",
    lines=(
        Line(("][batch=",), rf"\[epoch={integer('epoch')}(?:/\d+)?\]\[batch={integer('step')}/\d+\]:"),
        Line(
            ("throughput/samples_per_sec: ",),
            rf"Train throughput/samples_per_sec: {number('throughput')}",
            captured=(JOB_RATE,),
        ),
        Line(
            ("throughput/tokens_per_sec: ",),
            rf"Train throughput/tokens_per_sec: {number('token_throughput')}",
            captured=(JOB_TOKENS,),
        ),
        Line(("loss/train/total: ",), rf"Train loss/train/total: {number('loss')}", captured=(LOSS,)),
    ),
    rates=("throughput", "token_throughput"),
    merge=Merge.ONE,
    steps="batches of the epoch, from 1",
    traps=(
        "rates are means of the last 100 batches; throughput/device is that divided by the number of devices",
        "time/train is in hours; time/sample and time/token are counters",
        "batches_per_sec has four decimals, which are too few for slow batches",
    ),
    carries_steps=True,
)
