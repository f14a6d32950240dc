"""Formats of PaddlePaddle's programs of 2017 to 2020 and its current libraries."""

from dlperf_study.logs import printed
from dlperf_study.logs.format import Fact, Field, Format, Line, Merge
from dlperf_study.logs.printed import MetricScope, PrintedMetric, integer, number

#: Old versions print the first of these, newer ones the others.
COSTS = (
    Field(printed.RANK_STEP, "elapse"),
    Field(printed.RANK_STEP, "batch_cost"),
    Field(printed.RANK_READER, "reader_cost"),
    Field(printed.RANK_THROUGHPUT, "ips"),
)
#: The batch of training in a printed configuration of Paddle, which also states those of validation and inference.
TRAIN_BATCH = (
    r"(?i:Train)[ \t]*:[ \t]*\n"
    r"(?:(?!.*\b(?:Eval|Infer|VALID|TEST)[ \t]*:).*\n){0,99}?"
    r".*\bbatch_size[ \t]*:[ \t]*(\d+)"
)

_PASS_SECONDS = PrintedMetric("pass_seconds", "s", MetricScope.RANK)

PADDLE_VGG16_V2 = Format(
    name="paddle_vgg16_v2",
    title="PaddlePaddle v2 VGG16",
    program="PaddlePaddle/Paddle 0.11, benchmark/cluster/vgg16/vgg16_v2.py",
    lines=(
        Line(
            (", Batch ",),
            rf"Pass {integer('epoch')}, Batch {integer('step')},",
            (Field(printed.LOSS, "Cost"), Field(printed.RANK_STEP, "spent")),
        ),
        Line((" end, spent",), rf"Pass {integer('epoch')} end,", (Field(_PASS_SECONDS, "spent"),)),
    ),
    throughput_metrics=("step_seconds",),
    merge=Merge.SUM,
    steps="batches of the pass, from 0",
    traps=("prints a time: one trainer's throughput is batch / time, the job's the sum",),
    facts=(Fact("batch_per_device", r"batch_size:? (\d+)"),),
    synchronous=False,
)

PADDLE_VGG16_FLUID = Format(
    name="paddle_vgg16_fluid",
    title="PaddlePaddle Fluid VGG16",
    program="PaddlePaddle/Paddle 0.11 to 0.12, benchmark/cluster/vgg16/vgg16_fluid.py",
    lines=(
        Line(
            ("Iters = ",),
            rf"Pass = {integer('epoch')}, Iters = {integer('step')}",
            (Field(printed.LOSS, "Loss"), Field(printed.RANK_THROUGHPUT, "Speed"), Field(printed.RANK_STEP, "spent")),
        ),
        Line(
            ("Training performance",),
            rf"(?:Task:{integer('rank')} )?Pass = {integer('epoch')},",
            (Field(printed.RANK_TOTAL, "Training performance"),),
        ),
    ),
    throughput_metrics=("throughput", "step_seconds", "overall_throughput"),
    merge=Merge.SUM,
    steps="batches since the start of the pass, from 1",
    traps=(
        "one trainer's speed: the job's is the sum",
        "batch speeds exclude the reader, pass performance includes it",
    ),
    facts=(
        Fact("batch_per_device", r"batch_size: (\d+)"),
        Fact("world_size", r"trainers total:\s*(\d+)"),
        Fact("device", r"device: (\w+)"),
        Fact("rank", r"task_index: (\d+)"),
    ),
    synchronous=False,
)

PADDLE_FLUID_BENCHMARK = Format(
    name="paddle_fluid_benchmark",
    title="PaddlePaddle fluid_benchmark",
    program="PaddlePaddle/Paddle 0.12 to 1.0, benchmark/fluid/fluid_benchmark.py",
    lines=(
        Line(("Iter: ",), rf"Pass: {integer('epoch')}, Iter: {integer('step')},", (Field(printed.LOSS, "Loss"),)),
        Line(("examples/se",), rf"{number('overall_throughput')} examples/se[cd]\b", captured=(printed.RANK_TOTAL,)),
    ),
    throughput_metrics=("overall_throughput",),
    merge=Merge.SUM,
    steps="batches of the pass",
    traps=(
        "one trainer's throughput: the job's is the sum",
        "the unit may be printed as examples/sed",
    ),
    facts=(
        Fact("batch_size", r"batch_size: (\d+)"),
        Fact("model", r"model: (\w+)"),
        Fact("update_method", r"update_method: (\w+)"),
        Fact("examples", r"Total examples: (\d+)"),
        Fact("total_seconds", r"total time: ([\d.]+)"),
    ),
    synchronous=False,
    carries_steps=True,
)

_RESNET50_NUMBERS = (Field(printed.LOSS, "loss"), *COSTS)
_OLD_RESNET50_NUMBERS = (Field(printed.LOSS, "loss"), Field(printed.RANK_STEP, "time"))

#: PaddlePaddle 1.x image classification (ResNet50), in its four forms.
#:
#: The oldest prints ``time``, the next ``elapse``; a logger may put the time before it; since 2020-09 it prints
#: ``batch_cost``, ``reader_cost`` and ``ips`` instead.
PADDLE_RESNET50 = Format(
    name="paddle_resnet50",
    title="PaddlePaddle 1.x image classification",
    program="PaddlePaddle/models 1.0 to 1.8, PaddleCV/image_classification/train.py",
    lines=(
        Line(("train batch",), rf"\[Pass {integer('epoch')}, train batch {integer('step')}\]", _RESNET50_NUMBERS),
        Line(
            (", test",),
            rf"\[Pass {integer('epoch')}, test\s+batch {integer('step')}\]",
            _RESNET50_NUMBERS,
            training=False,
        ),
        Line((", trainbatch",), rf"Pass {integer('epoch')}, trainbatch {integer('step')},", _OLD_RESNET50_NUMBERS),
        Line(
            (",testbatch",),
            rf"Pass {integer('epoch')},testbatch {integer('step')},",
            _OLD_RESNET50_NUMBERS,
            training=False,
        ),
    ),
    throughput_metrics=("step_seconds", "throughput"),
    merge=Merge.SLOWEST,
    steps="batches of the pass, from 0",
    traps=(
        "trainer 0's time: job throughput = devices × batch per device / time",
        "elapse includes the reader",
        "ips is one rank's, averaged anew after each print",
    ),
    facts=(
        Fact("batch_size", r"batch_size\s*[:=]\s*(\d+)"),
        Fact("model", r"model\s*[:=]\s*(\w+)"),
        Fact("image_size", r"image_shape\s*[:=]\s*\[\d+, \d+, (\d+)\]"),
        Fact("classes", r"class_dim\s*[:=]\s*(\d+)"),
        Fact("steps_planned", r"max_iter\s*[:=]\s*(\d+)"),
        Fact("use_fp16", r"use_fp16\s*[:=]\s*(\w+)"),
        Fact("use_dali", r"use_dali\s*[:=]\s*(\w+)"),
    ),
    dlperf_steps=(20, 120),
)

_BERT_SPEED = PrintedMetric("steps_per_second", "steps/s", MetricScope.JOB)
_BERT_POSITION = rf"epoch: {integer('epoch')}, step: {integer('step')},"
_BERT_NUMBERS = (Field(printed.LOSS, " loss"), Field(_BERT_SPEED, "speed"))

PADDLE_BERT = Format(
    name="paddle_bert",
    title="PaddlePaddle 1.x BERT",
    program="PaddlePaddle/models 1.6 to 1.8, PaddleNLP/pretrain_language_models/BERT/train.py",
    lines=(
        Line(
            ("progress: ",),
            rf"(?:epoch: {integer('epoch')}, )?progress: \d+/\d+, step: {integer('step')},(?! ave )",
            _BERT_NUMBERS,
        ),
        Line(("ation_set]",), r"\[validation_set\] " + _BERT_POSITION, _BERT_NUMBERS, training=False),
    ),
    throughput_metrics=("steps_per_second",),
    merge=Merge.COPIES,
    steps="steps since the start",
    traps=("speed already includes all nodes: multiply by batch per device × devices per node",),
    facts=(
        Fact("devices_per_node", r"Device count (\d+)"),
        Fact("trainers", r"trainers_num:?\s*(\d+)"),
        Fact("batch_size", r"batch_size\s*[:=]\s*(\d+)"),
    ),
    dlperf_steps=(20, 120),
)

_CLAS_NUMBERS = (Field(printed.LOSS, " loss"), *COSTS)
#: The names its logger has had; PLSC prints the same line under a different name, and means the whole job.
_CLAS_LOGGER = r"\b(?:ppcls|root)\b INFO: "

PADDLECLAS = Format(
    name="paddleclas",
    title="PaddleClas",
    program="PaddlePaddle/PaddleClas 1.x and 2.x, tools/train.py and tools/static/train.py",
    lines=(
        Line(("train step",), rf"epoch:\s*{integer('epoch')}\s*,?\s*train\s+step:\s*{integer('step')}", _CLAS_NUMBERS),
        Line(
            ("valid step",),
            rf"epoch:\s*{integer('epoch')}\s*,?\s*(?:eval|valid)\s+step:\s*{integer('step')}",
            _CLAS_NUMBERS,
            training=False,
        ),
        Line(
            ("[Iter: ",),
            rf"{_CLAS_LOGGER}\[Train\]\[Epoch {integer('epoch')}/\d+\]\s*\[Iter: {integer('step')}/\d+\]",
            _CLAS_NUMBERS,
        ),
        Line(
            ("[Iter: ",),
            rf"{_CLAS_LOGGER}\[Eval\]\[Epoch {integer('epoch')}\]\s*\[Iter: {integer('step')}/\d+\]",
            _CLAS_NUMBERS,
            training=False,
        ),
    ),
    throughput_metrics=("step_seconds", "throughput"),
    merge=Merge.SLOWEST,
    steps="batches of the epoch, from 0",
    traps=("ips is one rank's, averaged anew after each print",),
    facts=(Fact("batch_size", TRAIN_BATCH),),
)

PADDLESEG = Format(
    name="paddleseg",
    title="PaddleSeg",
    program="PaddlePaddle/PaddleSeg 2.x, paddleseg/core/train.py",
    lines=(
        Line(
            ("[TRAIN] epoch",),
            rf"\[TRAIN\] epoch[:=]\s*{integer('epoch')}, iter[:=]\s*{integer('step')}/\d+",
            (Field(printed.LOSS, " loss"), *COSTS),
        ),
    ),
    throughput_metrics=("step_seconds", "throughput"),
    merge=Merge.SLOWEST,
    steps="iterations since the start, from 1; a line is of those since the line before",
    traps=("ips is one rank's; before 2021 there is none",),
)

PADDLEOCR = Format(
    name="paddleocr",
    title="PaddleOCR",
    program="PaddlePaddle/PaddleOCR 2.x and 3.x, tools/program.py, and Topdu/OpenOCR, which prints the same",
    lines=(
        Line(
            ("batch_cost: ",),
            rf"epoch: \[{integer('epoch')}/\d+\], (?:iter|global_step): {integer('step')}, lr: ",
            (
                Field(printed.LOSS, " loss"),
                Field(printed.RANK_READER, "reader_cost"),
                Field(printed.RANK_READER, "avg_reader_cost"),
                Field(printed.RANK_STEP, "batch_cost"),
                Field(printed.RANK_STEP, "avg_batch_cost"),
                Field(printed.RANK_THROUGHPUT, "ips"),
            ),
        ),
    ),
    throughput_metrics=("step_seconds", "throughput"),
    merge=Merge.SLOWEST,
    steps="iterations since the start, from 1; with iter, of the epoch; a line is of those since the line before",
    traps=(
        "ips is one rank's",
        "times exclude metrics and printing between batches",
    ),
)

PADDLEDETECTION = Format(
    name="paddledetection",
    title="PaddleDetection",
    program="PaddlePaddle/PaddleDetection 2.x, ppdet/engine/callbacks.py",
    lines=(
        Line(
            ("batch_cost: ",),
            rf"ppdet\.engine(?:\.callbacks)? INFO: Epoch: \[{integer('epoch')}\] \[\s*{integer('step')}/\d+\]",
            (
                Field(printed.LOSS, " loss"),
                Field(printed.JOB_STEP, "batch_cost"),
                Field(printed.RANK_READER, "data_cost"),
                Field(printed.RANK_THROUGHPUT, "ips"),
            ),
        ),
    ),
    throughput_metrics=("step_seconds",),
    merge=Merge.ONE,
    steps="batches of the epoch, from 0",
    traps=(
        "ips is one device's, a mean of 20 iterations",
        "restarted runs append to the same log",
    ),
)

_INTERVAL_SAMPLES = PrintedMetric("interval_samples_per_second", "samples/s", MetricScope.JOB)

PADDLENLP = Format(
    name="paddlenlp",
    title="PaddleNLP",
    program="PaddlePaddle/PaddleNLP, trainer/trainer.py, and examples of 2.0",
    lines=(
        Line(
            ("interval_runtime: ",),
            rf"\bloss: {number('loss')}, .*?\bglobal_step: {integer('step')}, ",
            (
                Field(_INTERVAL_SAMPLES, "interval_samples_per_second"),
                Field(printed.JOB_STEPS_THROUGHPUT, "interval_steps_per_second"),
            ),
            (printed.LOSS,),
        ),
        Line(
            ("global step ",),
            rf"global step {integer('step')}, epoch: \d+, .*?\bspeed: {number('step_seconds')} steps?/s",
            (Field(printed.LOSS, "loss"),),
            (printed.JOB_STEPS_THROUGHPUT,),
        ),
    ),
    throughput_metrics=("step_seconds",),
    merge=Merge.COPIES,
    steps="updates since the start; a line is of those since the line before",
    traps=("releases of 2022 print interval_samples_per_second ten times too low: steps/s × global batch is used",),
    facts=(
        Fact("global_batch", r"Total train batch size \(w\. parallel, distributed & accumulation\) = ([\d,]+)"),
        Fact("world_size", r" world_size\s+:\s*(\d+)"),
    ),
)

FORMATS = (
    PADDLE_VGG16_V2,
    PADDLE_VGG16_FLUID,
    PADDLE_FLUID_BENCHMARK,
    PADDLE_RESNET50,
    PADDLE_BERT,
    PADDLECLAS,
    PADDLESEG,
    PADDLEOCR,
    PADDLEDETECTION,
    PADDLENLP,
)
