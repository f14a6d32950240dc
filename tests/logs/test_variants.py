"""Lines as other versions, launchers and terminals print them; made from format strings, with invented numbers."""

import pytest

from dlperf_study.core.errors import LogError
from tests.logs.sample_numbers import TODAY
from tests.logs.small_logs import errors, messages, read_text

#: What a log states about its run next to its lines of training, and the facts in it.
STATEMENTS = {
    "dlperf's TensorFlow 2": (
        " 'runtime': {'num_gpus': 0,\n'batch_size': None,\n'num_gpus': 8,\n'batch_size': 128,\n"
        "TimeHistory: 2.5 seconds, 4.0 examples/second between steps 0 and 10",
        {"devices_per_node": "8", "batch_size": "128"},
    ),
    "PaddleClas": (
        "root INFO: DataLoader : \nroot INFO:     Eval : \nroot INFO:         sampler : \n"
        "root INFO:             batch_size : 64\nroot INFO:     Train : \nroot INFO:         sampler : \n"
        "root INFO:             batch_size : 128\nroot INFO: Infer : \nroot INFO:     batch_size : 10\n"
        "root INFO: Loss : \nroot INFO:     Train : \nroot INFO:         CELoss : \n"
        "root INFO: [Train][Epoch 1/120][Iter: 10/5004]lr: 0.1, loss: 6.9, batch_cost: 0.25s, ips: 512.0 samples/s",
        {"batch_size": "128"},
    ),
    "MXNet in float16": (
        "DLL 2021-03-24 07:42:46.7 - PARAMETER arch : resnetv15  dtype : float16  amp : False  batch_size : 408\n"
        "DLL 2021-03-23 11:48:38.8 - Epoch: 0 Iteration: 10  train.loss : 6.9  train.ips : 4.0 images/s",
        {"batch_size": "408", "model": "resnetv15"},
    ),
    "Horovod": ("Number of parameters: 25557032\nNumber of GPUs: 8\nIter #0: 4.0 img/sec per GPU", {"world_size": "8"}),
    "MLPerf": (
        ':::MLLOG {"time_ms": 1, "key": "seed", "value": 1}\n:::MLLOG {"time_ms": 1, "key": "seed", "value": 2}\n'
        ':::MLLOG {"time_ms": 1, "key": "global_batch_size", "value": 1024}\n'
        ':::MLLOG {"time_ms": 1, "key": "tracked_stats", "value": {"imgs_sec": 4.0}, "metadata": {"step": 1}}',
        {"global_batch_size": "1024"},
    ),
}


def test_the_end_of_an_epoch_without_a_time_of_a_step_is_a_line_that_could_be_used(tmp_path):
    """Torchvision's references for classification end an epoch so; those for detection add the seconds of a step."""
    text = TODAY.joinpath("torchvision_references_real.log").read_text() + "Epoch: [0] Total time: 3:40:12\n"
    log = read_text(tmp_path, text)
    assert "Total time" not in messages(log)
    assert log.format.name == "torchvision_references"


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_facts_of_a_log_are_those_of_training(name, tmp_path):
    text, facts = STATEMENTS[name]
    log = read_text(tmp_path, f"{text}\n")
    assert (log.facts, errors(log)) == (facts, "")


VARIANTS = {
    "paddle_resnet50": (
        "[Pass 0, train batch 10]  loss 6.9, lr 0.1, elapse 0.25 sec",
        "INFO:root:[Pass 12, train batch 10] \tloss 6.9, acc1 0.1, acc10 0.2, lr 0.1, elapse 0.25 sec",
        "Pass 0, trainbatch 10, loss 6.9,      acc1 0.1, acc5 0.2, lr 0.1, time 0.25 sec\n"
        "Pass 0,testbatch 0,loss 6.9,      acc1 0.1,acc5 0.2,time 0.30 sec",
        "[Pass 0, train batch 10] loss 6.9, acc1 0.0, lr 0.1, batch_cost: 0.25 sec, reader_cost: 0.1 sec, ips: 4.0",
    ),
    "paddleclas": (
        "2020-12-24 16:37:26 INFO: epoch:0  , train step:10  , loss: 6.9, top1: 0.1, lr: 0.1, batch_cost: 0.25 s, "
        "reader_cost: 0.00100 s, ips: 128.0 images/sec.",
        "[2021/10/08 03:59:44] root INFO: [Train][Epoch 1/120][Iter: 10/5004]lr: 0.1, top1: 0.0, "
        "CELoss: 7.1, loss: 6.9, batch_cost: 0.25s, reader_cost: 0.1, ips: 41.4 images/sec, eta: 21 days, 1:02:03",
        "[2023/01/02 03:04:05] ppcls INFO: [Train][Epoch 1/120][Iter: 10/5004]lr(PiecewiseDecay): 0.1, top1: 0.0, "
        "CELoss: 7.1, loss: 6.9, batch_cost: 0.25s, reader_cost: 0.1, ips: 512.0 samples/s, eta: 1:02:03\n"
        "[2023/01/02 03:04:06] ppcls INFO: [Train][Epoch 1/120][Avg]top1: 0.0, CELoss: 7.1, loss: 6.9\n"
        "[2023/01/02 03:04:07] ppcls INFO: [Eval][Epoch 1][Avg]CELoss: 7.1, loss: 6.9, top1: 0.0",
    ),
    "paddle_bert": (
        "epoch: 1, progress: 1/1, step: 10, loss: 6.9, lm_acc: 0.1, next_sent_acc: 0.5, speed: 4 steps/s, file: x",
        "progress: 1/64, step: 10, loss: 6.9, ppl: 7.0, next_sent_acc: 0.5, speed: 4.000000 steps/s, file: part-1.gz",
    ),
    "paddle_vgg16_fluid": (
        "Pass = 0, Iters = 10, Loss = 6.9, Accuracy = 0.1, Speed = 4.00 img/s, Period = 3 secs",
        "Pass = 0, Iters = 10, Loss = 6.9, Accuracy = 0.1, batch spent 0.25",
    ),
    "plsc_2_2": (
        "Training: 2021-11-07 21:21:01,700 - loss 6.9, lr: 0.2, epoch: 0, step: 10, eta: 1 h, throughput: 4 imgs/sec",
        "[INFO] loss 6.9, lr: 0.2, epoch: 0, step: 10, throughput: 4.00 imgs/sec",
    ),
    "plsc_2_4": (
        "[2023/03/02 10:00:01] plsc INFO: [Train][Epoch 1/20][Iter: 10/9] lr: 0.1, loss: 6.9, reader_cost: 0.1 s, "
        "batch_cost: 0.25, ips: 4.0 images/sec, max mem: 20.00 GB, eta: 3:01:22",
        "[2023/03/02 10:00:01] plsc INFO: [Train][Epoch 1/20][Iter: 10/9]lr: 0.1, CELoss: 7.1, loss: 6.9, "
        "batch_cost: 0.25s, reader_cost: 0.1, ips: 4.0 images/sec, eta: 3:01:22",
    ),
    "tf_cnn_benchmarks": (
        "10\timages/sec: 4.0 +/- 0.1 (jitter = 0.2)\t6.9",
        "10    images/sec: 4.0 +/- 0.1 (jitter = 0.2)    6.9    0.001",
    ),
    "horovod_synthetic": (
        "Iter #10: 4.0 img/sec per GPU",
        "Iter #10: 4.0 images/sec per HPU",
    ),
    "nvidia_dll": (
        "DLL 2021-03-23 11:48:38.824370 - Epoch: 0 Iteration: 10  train.loss : 6.9  train.total_ips : 4.0 img/s",
        "DLL 2021-03-23 11:48:38.824370 - Epoch: 0 Iteration: 10  train.loss : 6.9  train.compute_ips : 9 img/s  "
        "train.total_ips : 4.0 img/s  train.data_time : 0.1 s",
        "DLL 2021-03-23 11:48:38.824370 - (10,) total_ips : 4 ",
        "DLL 2021-03-23 11:48:38.824370 - Training Epoch: 0 Training Iteration: 10  throughput_train : 4.0 seq/s\n"
        "DLL 2021-03-23 11:48:39.824370 -  throughput_train : 3.9 sequences/s",
        "DLL 2021-03-23 11:48:38.824370 - Epoch: 0 Iteration: 10  train.loss : 6.9  train.ips : 4.0 images/s\n"
        "DLL 2021-03-23 11:48:39.824370 - Epoch: 0  train.loss : 6.9  train.ips : 3.9 images/s  val.ips : 9 images/s\n"
        "DLL 2021-03-23 11:48:39.824370 - Summary:  train.loss : 6.9  train.ips : 3.9 images/s  val.ips : 9.0 images/s",
        "DLL 2021-03-23 11:48:38.824370 - Epoch: 0 Iteration: 10  train.loss : 6.9  train.total_ips : 4.0 img/s\n"
        "DLL 2021-03-23 11:48:39.824370 - Epoch: 0  train.loss : 6.9  train.total_ips : 3.9 img/s  val.total_ips : 9",
    ),
    "pytorch_imagenet": (
        "Epoch: [0][10/53]\tTime 0.250 (2.410)\tData 0.108 (0.072)\tLoss 6.9000 (7.0)\tPrec@1 0.1 (0.1)",
        "Epoch: [0][  10/5005]\tTime  0.25 ( 0.25)\tData  0.00 ( 0.00)\tLoss 6.9e+00 (6.9e+00)\tAcc@1   0.78 (  0.78)",
    ),
    "tf2_timehistory": (
        "I0826 15:13:29.25 14 keras_utils.py:145] TimeHistory: 2.5 seconds, 4.0 examples/second between steps 0 and 10",
        " 'runtime': {'num_gpus': 0,\n 'runtime': {'num_gpus': 8,\n"
        "TimeHistory: 2.5 seconds, 4.0 examples/second between steps 0 and 10",
        "I0826 15:13:29.25 k.py:1] BenchmarkMetric: {'global step':10, 'time_taken': 39.1,'examples_per_second': 4.0}",
    ),
    "mxnet_speedometer": (
        "INFO:root:Epoch[0] Batch [10]\tSpeed: 4.00 samples/sec\taccuracy=0.2",
        "INFO:root:Epoch[0] Batch [0-10]\tSpeed: 4.00 samples/sec accuracy=0.2\tlr=0.1",
        "Node[1] Epoch[0] Batch [10]     Speed: 4.00 samples/sec        Train-accuracy=0.001016",
        "INFO:root:Iter[0] Batch [10]\tSpeed: 4.00 samples/sec",
        "INFO  org.apache.mxnet.Callback$Speedometer: Epoch[2] Batch [10]\tSpeed: 4.00 samples/sec\tTrain-accuracy=0.6",
    ),
    "mindspore": (
        "epoch: 1 step: 10, loss is 6.9\nepoch time: 2500.0 ms, per step time: 250.0 ms",
        "epoch: 1 step: 10, loss is [6.9]\nTrain epoch time: 2500.0 ms, per step time: 250.000 ms",
        "epoch: 1 step: 10, loss is 6.9\nepoch time: 2500.0, per step time: 250",
    ),
    "hugectr": (
        "[21d10h52m11s][HUGECTR][INFO]: Iter: 10 Time(10 iters): 2.5s Loss: 6.9 lr:0.001000",
        "[HCTR][02:51:59.123][INFO][RK0][main]: Iter: 10 Time(10 iters): 2.5s Loss: 6.9 lr:0.001",
    ),
    "gluonnlp_bert": (
        "INFO:root:[step 10]\tmlm_loss= 6.90000\tmlm_acc=1.00\tnsp_loss= 0.00\tnsp_acc=50.00\tthroughput=0.004K tks/s\t"
        "lr=0.0000005 time=0.24, latency=250.0 ms/step",
    ),
    "dllogger": (
        'DLLL {"type": "LOG", "step": "PARAMETER", "data": {"batch_size": 128}}\n'
        'DLLL {"type": "LOG", "step": [0, 10], "data": {"train.loss": 6.9, "train.ips": 4.0}}\n'
        'DLLL {"type": "LOG", "step": [0], "data": {"train.loss": 6.9, "train.ips": 3.9, "val.ips": 9.0}}\n'
        'DLLL {"type": "LOG", "step": [], "data": {"train.ips": 3.9}}',
        'DLLL {"type": "LOG", "step": [10], "data": {"imgs_per_sec": 4.0, "total_loss": 6.9}}',
    ),
    "mllog": (
        ':::MLLOG {"time_ms": 1, "event_type": "POINT_IN_TIME", "key": "tracked_stats", "value": {"throughput": 4.0}, '
        '"metadata": {"lineno": 1, "epoch_num": null, "step_num": 10}}',
        '0: :::MLLOG {"time_ms": 1, "event_type": "POINT_IN_TIME", "key": "tracked_stats", "value": {"imgs_sec": 4.0}, '
        '"metadata": {"lineno": 1, "step": 10}}\n'
        '0: :::MLLOG {"time_ms": 1, "event_type": "POINT_IN_TIME", "key": "throughput", "value": 4.0, "metadata": {}}',
    ),
    "insightface_partial_fc": ("2021-01-08 19:22:59,208-Iter:10 Rank:2 it/sec Total:4 it/sec [0][loss]:6.9",),
}
CASES = [(name, text) for name, texts in VARIANTS.items() for text in texts]


@pytest.mark.parametrize(("name", "text"), CASES)
def test_other_versions_are_read_as_well(tmp_path, name, text):
    log = read_text(tmp_path, f"{text}\n")
    assert log.format.name == name
    rows = log.series(log.throughput_metric)
    assert list(rows.step) == [10]
    assert rows.values[log.throughput_metric][0] in (0.25, 4.0)
    # Of a program that prints something when it is done, the end is missing.
    assert len(log.diagnostics) == bool(log.format.closing_metric)


#: What other programs print: it looks like a format here, and means something else or has a different unit.
OTHER_PROGRAMS = {
    "PaddleOCR": "[2022/02/22 07:58:05] root INFO: epoch: [1/9], iter: 10, loss: 6.9, reader_cost: 0.1 s, batch_cost: "
    "0.25 s, samples: 160, ips: 4.0",
    "PaddleNLP": "global step 10, epoch: 0, batch: 9, loss: 6.9, avg_batch_cost: 0.25 sec, ips: 4.0 sequences/sec",
    "ERNIE fine-tuning": "epoch: 0, progress: 10/99, step: 10, ave loss: 6.9, ave acc: 0.3, speed: 4.0 steps/s",
    "data time first": "Epoch: [0][10/99]\tData Time 0.012 (0.6)\tBatch Time 0.25 (0.612)\tLoss 6.9 (7.0)",
    "GluonCV": "INFO:root:[Epoch 0][Batch 10], Speed: 4.0 samples/sec, CrossEntropy=6.9",
    "tokens in Speedometer": "INFO:root:Epoch[0] Batch [10]\tSpeed: 4.0 tokens/sec",
    "tokens in dllogger": "DLL 2021-03-23 11:48:38.824370 - Iteration: 10  throughput_train : 4.0 tokens/s",
    "epochs in seconds": "epoch time: 2.5s, per step time: 0.25s",
    "steps in seconds": "epoch time: 2500.0 ms, per step time: 0.25 s",
    "two lines as one": "TimeHistory: 2.5 seconds, 4.0 examples/second between steps 0 and 10600/600 - 264s - loss: 6",
    "throughput of one device": "[2023/03/02 10:00:01] plsc INFO: [Train][Epoch 1/20][Iter: 10/9]lr: 0.1, loss: 6.9, "
    "ips: 4.0 images/sec/gpu, eta: 3:01:22",
    "the same in words": "train: iter 10, loss 6.9, throughput: 4.0 samples/s per GPU",
    "seconds of a step": "epoch: 1, progress: 1/1, step: 10, loss: 6.9, ppl: 7.0, speed: 0.24 s/step, file: x",
    "milliseconds of a batch": "INFO:root:Epoch[0] Batch [10]\tSpeed: 250.0 ms/batch\taccuracy=0.2",
    "a throughput for a time": "[Pass 0, train batch 10]  loss 6.9, lr 0.1, elapse 4.0 steps/s",
    "thousands of steps": "[INFO] loss 6.9, lr: 0.2, epoch: 0, step: 2,100, throughput: 4.00 imgs/sec",
    "episodes": "Episode 1 has 10.0 steps, cost time: 2500.0 ms, per step time: 250.0 ms",
    "RNN-T": "DLL 2021-05-19 10:22:28.520921 - epoch    1 | iter   10/272 | loss 6.9 | utts/s     4 | took  0.25 s",
    "arcface_torch": "Training: 2021-05-12 00:00:00,123-Speed 4.0 samples/sec   Loss 6.9   Epoch: 0   Global Step: 10",
}


@pytest.mark.parametrize("text", OTHER_PROGRAMS.values(), ids=OTHER_PROGRAMS)
def test_lines_of_other_programs_are_refused(tmp_path, text):
    with pytest.raises(LogError):
        read_text(tmp_path, f"{text}\n")


@pytest.mark.parametrize("text", VARIANTS["plsc_2_4"])
def test_the_costs_of_a_step_are_read_in_either_order(tmp_path, text):
    columns = read_text(tmp_path, f"{text}\n").records.values
    assert {name: column[0] for name, column in columns.items()} == {
        "loss": 6.9,
        "reader_seconds": 0.1,
        "step_seconds": 0.25,
        "throughput": 4.0,
    }


def test_lines_that_docker_keeps_as_json_are_read_as_printed(tmp_path):
    line = r'{"log":"INFO:root:Epoch[0] Batch [20]\tSpeed: 4.00 samples/sec\tacc=0.1\n","stream":"stderr"}'
    log = read_text(tmp_path, f"{line}\n")
    assert (log.format.name, log.series("throughput").values["throughput"].tolist()) == ("mxnet_speedometer", [4])


PRINTED = ("[Pass 0, train batch 1] loss 6.9, elapse 0.25 sec", "[Pass 0, train batch 2] loss 6.8, elapse 0.26 sec")
TWO_LINES = "\n".join([*PRINTED, ""])


@pytest.mark.parametrize("prefix", ["[1,3]<stdout>:", "[default3]:", "[rank3]:", "[3]<stderr>:", " 3: "])
def test_the_rank_that_a_launcher_names_is_read(tmp_path, prefix):
    log = read_text(tmp_path, "".join(f"{prefix}{line}\n" for line in PRINTED))
    assert list(log.records.rank) == [3, 3]


ENCODED = {
    "crlf": TWO_LINES.replace("\n", "\r\n").encode(),
    "cr": TWO_LINES.replace("\n", "\r").encode(),
    "colours": "".join(f"\x1b[32m{line}\x1b[0m\n" for line in PRINTED).encode(),
    "utf-16": TWO_LINES.encode("utf-16"),
    "utf-32": TWO_LINES.encode("utf-32"),
    "utf-16-be": TWO_LINES.encode("utf-16-be"),
    "binary": b"\xff\xfe\x00 no text at all\n" + TWO_LINES.encode(),
    "bom": TWO_LINES.encode("utf-8-sig"),
    "no end": TWO_LINES.removesuffix("\n").encode(),
}


@pytest.mark.parametrize("content", ENCODED.values(), ids=ENCODED)
def test_terminals_and_encodings_change_nothing(tmp_path, content):
    values = read_text(tmp_path, content).records.values
    assert list(values["step_seconds"]) == [0.25, 0.26]
    assert list(values["loss"]) == [6.9, 6.8]
