"""What is true of the samples: numbers as a person reads them, and the rates of jobs as authors state them."""

from pathlib import Path

SAMPLES = Path(__file__).parent / "samples"
TODAY = SAMPLES / "today"
MEAN, EPOCH_MEAN = ", a mean since the start", ", a mean since each epoch began"

#: sample: metric, how many, the first (step, value), the last.
NUMBERS = {
    "elasticdl_real": ("task_seconds", 7, (-1, 1033.2), (-1, 226.265)),
    "gluonnlp_bert_4ranks_constructed": ("throughput", 40, (1, 17100.0), (10, 17300.0)),
    "gluonnlp_bert_one_process_real": ("throughput", 4, (249, 122000.0), (999, 127000.0)),
    "horovod_synthetic_real": ("throughput", 10, (0, 108.3), (9, 108.3)),
    "hugectr_real": ("step_seconds", 3, (100, 0.00315066), (1100, 0.00222373)),
    "insightface_partial_fc_real": ("throughput", 12, (460, 1659.38), (680, 1657.61)),
    "mindspore_real": ("step_seconds", 7, (422, 0.312811), (39, 0.000597)),
    "mxnet_speedometer_interval_real": ("throughput", 18, (740, 1102.56), (1080, 1099.9)),
    "mxnet_speedometer_two_programs_real": ("throughput", 11, (50, 590.59), (100, 92.71)),
    "nvidia_dll_pytorch_resnet50_real": ("throughput", 12, (1, 267.44), (12, 10393.54)),
    "nvidia_dll_tensorflow_bert_real": ("throughput", 4, (16, 145.221), (42, 142.487)),
    "nvidia_dll_tensorflow_resnet50_constructed": ("throughput", 24, (0, 9.87), (23, None)),
    "nvidia_dll_total_ips_real": ("throughput", 11, (120, 2879.142978189404), (130, 2901.9657139768383)),
    "oneflow_insightface_constructed": ("throughput", 24, (1, 12.2), (24, 243.802)),
    "oneflow_resnet50_real": ("throughput", 17, (100, 2897.681), (300, 2510.358)),
    "paddle_bert_constructed": ("steps_per_second", 14, (1, 0.31), (14, None)),
    "paddle_bert_excerpts_real": ("steps_per_second", 4, (2, 3.092194), (8720, 5.793753)),
    "paddle_fluid_benchmark_constructed": ("overall_throughput", 1, (20, 13.09576), (20, 13.09576)),
    "paddle_fluid_benchmark_real": ("overall_throughput", 1, (10, 1.11707), (10, 1.11707)),
    "paddle_resnet50_trainbatch_real": ("step_seconds", 4, (72, 0.92), (144, 0.89)),
    "paddle_resnet50_elapse_constructed": ("step_seconds", 30, (0, 5.1531), (29, None)),
    "paddle_resnet50_ips_real": ("throughput", 4, (0, 94.25099), (30, 987.52497)),
    "paddle_resnet50_timestamped_constructed": ("step_seconds", 30, (0, 5.1531), (29, None)),
    "paddle_vgg16_fluid_constructed": ("throughput", 40, (1, 13.08), (40, 12.72)),
    "paddle_vgg16_fluid_real": ("overall_throughput", 5, (-1, 240.092875), (-1, 240.154561)),
    "paddle_vgg16_v2_constructed": ("step_seconds", 20, (0, 7.53272), (19, None)),
    "paddleclas_real": ("step_seconds", 11, (28060, 0.436), (28160, 0.426)),
    "plsc_2020_8ranks_constructed": ("throughput", 64, (0, 1402.38), (70, None)),
    "plsc_2020_constructed": ("throughput", 16, (0, 182.3), (150, 397.09)),
    "plsc_2_2_complete_real": ("throughput", 1264, (100, 3617.34), (126400, 7961.39)),
    "plsc_2_2_real": ("throughput", 32, (100, 2848.87), (3200, 9716.32)),
    "plsc_2_4_constructed": ("throughput", 20, (10, 9562.79486), (200, None)),
    "pytorch_imagenet_real": ("step_seconds", 13, (0, 12.054), (15, 0.508)),
    "tensorpack_constructed": ("throughput", 7, (50, 711.3), (350, 2857.4)),
    "tensorpack_real": ("throughput", 1, (3500, 4.602), (3500, 4.602)),
    "tf2_timehistory_real": ("throughput", 6, (100, 110.12), (600, 321.57)),
    "tf_cnn_benchmarks_horovod_real": ("running_throughput", 11, (1, 205.3), (100, 204.8)),
    "tf_cnn_benchmarks_real": ("overall_throughput", 1, (100, 124.77), (100, 124.77)),
    "tf_cnn_benchmarks_servers_real": ("overall_throughput", 1, (100, 48.05), (100, 48.05)),
    "dllogger_constructed": ("throughput", 3, (0, 410.5), (2, 2880.75)),
    "mllog_constructed": ("train_throughput", 2, (400, 21500.5), (800, 21611.25)),
    "mllog_epochs_real": ("throughput", 2, (31, 35759.37477602493), (32, 35794.2955538236)),
}
#: What samples state about their runs.
FACTS = {
    "plsc_2_2_complete_real": {"world_size": "8", "global_batch": "1024", "batch_per_device": "128"},
    "horovod_synthetic_real": {"world_size": "4", "batch_per_device": "32", "model": "resnet50"},
    "nvidia_dll_pytorch_resnet50_real": {"world_size": "16", "batch_size": "128", "amp": "False"},
    "tf_cnn_benchmarks_servers_real": {"mode": "forward-only", "global_batch": "32"},
    "paddle_vgg16_fluid_constructed": {"world_size": "20", "batch_per_device": "128", "rank": "0"},
    "hugectr_real": {"nodes": "1", "devices_per_node": "1", "steps_planned": "1200"},
    "dllogger_constructed": {"world_size": "8", "batch_size": "128"},
    "mllog_constructed": {"global_batch_size": "3264", "submission_benchmark": "resnet"},
}
#: Sample of today: nodes, devices per node, batch per device; samples/s; its relative error by rounding; printed as.
THROUGHPUTS = {
    # 2.7330 samples/s of the job, which is 16 times that of a device.
    "composer_real.log": ((2, 8, 64), 2.733, 1e-9, "samples/s of the job"),
    "composer_two_batches_constructed.log": ((1, 8, 8), 65.0, 0.01, "samples/s of the job"),
    # The whole log: RunningAvgSamplesPerSec=171.74, last CurrSamplesPerSec=171.60.
    "deepspeed_real.log": ((1, 16, 8), 171.6, 0.005, "samples/s of the job"),
    "deepspeed_old_constructed.log": ((1, 1, 8), 41.25, 1e-9, "samples/s of the job" + MEAN),
    "detectron2_real.log": ((1, 1, 2), 2 / 1.1952, 1e-9, "s of the job" + MEAN),
    # "Overall training speed: 298 iterations in 0:06:16 (1.2650 s / it)"
    "detectron2_metrics_real.json": ((1, 1, 2), 2 / 1.265, 0.02, "s of the job"),
    # 9 updates of 8 sequences from 12:31:36 to 12:41:04, with the time of two that were ignored for their overflow.
    "fairseq_real.log": ((1, 1, 8), 8 * 9 / 568, 1e-3, "samples/s of the job"),
    "fairseq_hydra_constructed.log": ((1, 4, 20), 80 * 8000 / 4000, 1e-9, "samples/s of the job"),
    "fairseq_text_constructed.log": ((1, 2, 8), 16.0, 1e-9, "tokens/s of the job"),
    # 100 steps of 24 samples in 425.43 s.
    "huggingface_trainer_real.log": ((2, 12, 1), 100 * 24 / 425.43, 1e-3, "samples/s of the job" + MEAN),
    "huggingface_trainer_state_constructed.json": ((1, 1, 8), 32.5, 1e-9, "samples/s of the job" + MEAN),
    # 1719 steps of 32 samples in 2 s, printed as 1 ms per step.
    "keras_fit_real.log": ((1, 1, 32), 32 / 0.001, 1e-9, "s of the job" + EPOCH_MEAN),
    "keras_fit_keras3_constructed.log": ((1, 1, 32), 32 / 0.005, 1e-9, "s of the job" + EPOCH_MEAN),
    "keras_fit_verbose_2_constructed.log": ((1, 1, 32), 32 / 0.006, 1e-9, "s of the job" + EPOCH_MEAN),
    "lightning_real.log": ((1, 2, 4), 8 / 4.47, 1e-9, "steps/s of one process" + EPOCH_MEAN),
    "llm_c_constructed.log": ((1, 8, 64), 512 / 0.61137, 0.01, "s of the job"),
    # 24 × 2048 tokens / 5.667 s on each of 4 devices.
    "maxtext_real.log": ((1, 4, 24), 24 * 4 / 5.667, 1e-3, "tokens/s of each device"),
    # "16 GPUs 18B GBS 4: 1.381 s/iter"
    "megatron_lm_real.log": ((1, 1, 4), 4 / 1.381, 0.02, "samples/s of the job"),
    "mmengine_real.log": ((1, 2, 128), 256 / 0.2, 0.02, "s of the job"),
    "mmengine_scalars_constructed.json": ((1, 2, 4), 8 / 0.375, 1e-9, "s of the job"),
    # "step_avg 142.01 ms" of the whole run, 512 sequences of 1024 tokens.
    "modded_nanogpt_real.log": ((1, 8, 64), 512 / 0.142, 0.05, "s of the job"),
    # 63 ms between two lines.
    "modded_nanogpt_2026_constructed.log": ((1, 8, 16), 128 / 0.063, 1e-9, "s of the job"),
    # Epochs of 507 s: 2306 images per second of the job, 288.3 printed.
    "mllog_ssd_real.log": ((1, 8, 32), 2306, 0.01, "a throughput without a stated unit of each device"),
    # 32 samples in 2 s, evaluations of 20 s between them.
    "mllog_nemo_constructed.log": ((1, 8, 1), 16.0, 1e-3, "s of the job"),
    "mllog_nemo_throughput_constructed.log": ((1, 8, 1), 16.0, 1e-9, "a throughput without a stated unit of the job"),
    # "about 560 ms per iteration", 12 × 5 × 8 sequences.
    "nanogpt_real.log": ((1, 8, 60), 480 / 0.5628, 2e-3, "s of the job"),
    "nanogpt_mfu_real.log": ((1, 1, 64), 64 / 0.894, 0.01, "s of the job"),
    "nemo_real.log": ((1, 1, 1), 1 / 0.0317, 0.02, "samples/s of the job"),
    # ips × batch_cost is 2, the batch of a device.
    "paddledetection_real.log": ((1, 1, 2), 2 / 0.56, 0.05, "s of the job"),
    # 11.327 steps/s × 8, against 9.061 printed.
    "paddlenlp_real.log": ((1, 1, 8), 90.6, 0.06, "steps/s of the job"),
    "paddlenlp_tokens_real.log": ((1, 1, 1), 2 / (1.1518 + 0.2556), 1e-3, "steps/s of the job"),
    # Every third of 0.19 s, the others of 0.18 s.
    "paddleocr_constructed.log": ((1, 2, 64), 128 / 0.18, 0.03, "s of one process"),
    "paddleocr_2_0_constructed.log": ((1, 1, 512), 512 / 2.5, 1e-3, "s of one process"),
    "paddleseg_constructed.log": ((1, 2, 4), 8 / 0.2, 1e-9, "s of one process"),
    "paddleseg_2_0_constructed.log": ((1, 2, 4), 8 / 0.6, 1e-9, "s of one process"),
    "paddleclas_2_6_constructed.log": ((1, 8, 256), 2048 / 0.785, 0.01, "s of one process"),
    # Written as 350 + sin(step).
    "tensorboard_constructed.out.tfevents.1795407924": ((1, 1, 128), 350.0, 0.002, "samples/s of the job"),
    "wandb_constructed.wandb": ((1, 1, 128), 350.0, 0.002, "samples/s of the job"),
    "timm_constructed.log": ((1, 8, 128), 4000.0, 1e-9, "samples/s of the job" + EPOCH_MEAN),
    "timm_real.log": ((1, 1, 128), 69.89, 1e-9, "samples/s of the job" + EPOCH_MEAN),
    # "steady 6,633 tps per rank", 4096 tokens per sample on 24 ranks.
    "torchtitan_real.log": ((2, 12, 1), 24 * 6633 / 4096, 0.01, "tokens/s of each device"),
    # Batch / time, and not the 13.6 img/s of one process without its data.
    "torchvision_references_real.log": ((1, 8, 32), 8 * 32 / 2.67, 0.03, "s of one process"),
    # "Total time: 0:00:05 (0.9880 s / it)", then 0.5778, of six steps each.
    "torchvision_references_detection_real.log": ((1, 1, 1), 2 / (0.9880 + 0.5778), 1e-3, "s of one process"),
    # 1000 images per epoch; 52.9 s of the last epochs of the whole file, 36 s at its start.
    "ultralytics_results_real.csv": ((1, 1, 16), 1000 / 36.0, 0.1, "s of the job"),
    "ultralytics_constructed.log": ((1, 2, 8), 16 * 2.5, 1e-9, "steps/s of the job" + EPOCH_MEAN),
}
#: The tokens of a sample, where programs print those.
TOKENS = {
    "fairseq_text_constructed.log": 512,
    "mllog_ssd_real.log": 1,
    "mllog_nemo_throughput_constructed.log": 1,
    "maxtext_real.log": 2048,
    "torchtitan_real.log": 4096,
}
