"""Tables as people publish them, each with one error, which is diagnosed; and right ones, without a diagnostic."""

import pytest

from dlperf_study.audit.audit import audit

_RUNS = "cell,metric,value,world_size,estimator,runs_of"
#: A table, by what is wrong with it; and the check that must find it.
PLANTED = {
    "throughputs are multiplied by the devices": ("scopes", "world_size,throughput|1,100.0|2,390.0|4,1480.0"),
    "one throughput is of a node": (
        "scopes",
        "world_size,nodes,devices_per_node,throughput|8,1,8,2630.5|16,2,8,5190.1|32,4,8,2555.7",
    ),
    "efficiency in per cent": ("ratios", "world_size,throughput,efficiency|1,100.0,100|2,195.2,97.6|4,370.0,92.5"),
    "throughputs and speedups are swapped": (
        "ratios",
        "world_size,throughput,speedup|1,1.00,100.0|2,1.95,195.2|4,3.70,370.0",
    ),
    "batches are swapped": (
        "global_batch",
        "world_size,batch_per_device,global_batch,throughput|1,32,32,100.0|4,128,32,370.0",
    ),
    "a speedup under strong scaling": (
        "ratios",
        "world_size,global_batch,batch_per_device,throughput,speedup|1,256,256,100.0,1.00|2,256,128,190.0,1.90"
        "|4,256,64,340.0,3.90",
    ),
    "one speedup is relative to another baseline": (
        "ratios",
        "world_size,throughput,speedup|1,100.0,0.13|8,760.0,1.00|16,1480.0,1.95|32,2800.0,28.00",
    ),
    "efficiency ignores that the baseline has 8 devices": (
        "efficiency",
        "world_size,throughput,speedup,efficiency|8,760.0,1.00,1.00|16,1480.0,1.95,0.12|32,2800.0,3.68,0.12",
    ),
    "a ratio without its throughput": ("ratios", "world_size,throughput,speedup|1,100.0,1.00|2,nan,1.95|4,370.0,3.70"),
    "a point for the comma of thousands": (
        "ratios",
        "world_size,throughput,speedup|1,100,1.00|8,780,7.80|16,1.480,14.80",
    ),
    "efficiencies beside speedups, without throughputs": (
        "efficiency",
        "world_size,speedup,efficiency|1,1.00,100%|2,1.90,95%|4,3.60,80%",
    ),
    "speedups alone, above linear": ("above_linear", "world_size,speedup|1,1.00|2,1.95|4,5.70"),
}
RIGHT = {
    "two nodes": (
        "world_size,nodes,devices_per_node,batch_per_device,global_batch,throughput,speedup,efficiency"
        "|1,1,1,32,32,100.0,1.00,100%|2,1,2,32,64,195.2,1.95,97.6%|4,1,4,32,128,370.0,3.70,92.5%"
        "|8,2,4,32,256,702.3,7.02,87.8%"
    ),
    "runs": (
        f"{_RUNS},baseline|a,throughput,100.0,1,median,,|b,throughput,99.0,1,run,a,|c,throughput,100.0,1,run,a,"
        "|d,throughput,101.5,1,run,a,|e,throughput,370.0,4,median,,|f,throughput,368.2,4,run,e,"
        "|g,throughput,370.0,4,run,e,|h,throughput,371.5,4,run,e,|i,speedup,3.70,4,,,a"
    ),
    "two networks": (
        "model,precision,batch_per_device,world_size,throughput,speedup|resnet50,fp32,128,1,352.7,1.00"
        "|resnet50,fp32,128,8,2630.5,7.46|vgg16,fp32,128,1,221.0,1.00|vgg16,fp32,128,8,1490.0,6.74"
    ),
    "relative to 8 devices": (
        "world_size,nodes,devices_per_node,throughput,speedup,efficiency"
        "|8,1,8,2630,1.00,100%|16,2,8,5190,1.97,98.7%|32,4,8,10100,3.84,96.0%"
    ),
    "strong scaling": (
        "world_size,global_batch,batch_per_device,step_seconds,throughput,speedup"
        "|1,256,256,2.5600,100.0,1.00|2,256,128,1.3474,190.0,1.90|4,256,64,0.7314,350.0,3.50"
    ),
    "ratios with their sign": "world_size,throughput,speedup|1,100.0,1.00x|2,195.2,1.95 ×|4,370.0,3.70x",
    "a condition of its own": "cooling,world_size,throughput|air,1,100.0|water,1,120.0|air,2,190.0|water,2,230.0",
    "a point not measured": "world_size,throughput,speedup|1,100.0,1.00|2,-,-|4,370.0,3.70",
}


def checks_that_find(tables):
    return [checked.name for checked in audit(tables.results) if checked.diagnostics]


@pytest.mark.parametrize(("check", "table"), PLANTED.values(), ids=PLANTED)
def test_every_planted_error_is_diagnosed(read_table, check, table):
    assert check in checks_that_find(read_table(table.replace("|", "\n")))


@pytest.mark.parametrize("table", RIGHT.values(), ids=RIGHT)
def test_no_right_table_is_diagnosed(read_table, table):
    assert checks_that_find(read_table(table.replace("|", "\n"))) == []
