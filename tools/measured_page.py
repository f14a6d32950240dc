"""Write the tables of ``docs/measured/h100.md`` from the runs next to it: ``python -m tools.measured_page``."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from dlperf_study.audit import published
from dlperf_study.core.paths import PROJECT
from dlperf_study.generated import between_markers
from dlperf_study.metrics.statistics import MINIMUM_RUNS, Estimate
from dlperf_study.report.formatting import display_name, format_bounded, plain

PAGE = PROJECT / "docs" / "measured" / "h100.md"
RUNS = PAGE.with_suffix(".csv")
FACTORS = ["precision", "loss_scaling", "memory_format", "compiler", "cudnn_autotune", "fused_optimizer"]
CONFIGURATION = [*FACTORS, "batch_per_device"]
#: The tables of the published source, and the configuration of ours that asks the same.
PUBLISHED_SOURCE = "dlperf_ngc_pytorch_resnet50"
SAME_QUESTION = {
    "fp32_b128": {"precision": "fp32", "batch_per_device": 128},
    "fp16_b256": {"precision": "amp_fp16", "loss_scaling": "dynamic", "batch_per_device": 256},
}


def page(text: str, runs: pd.DataFrame) -> str:
    """Return the page with its tables made again from the runs; the rest is unchanged."""
    text = between_markers(text, "table", "\n".join(table(runs)))
    return between_markers(text, "published", "\n".join(published_table(runs)))


def table(runs: pd.DataFrame) -> Iterator[str]:
    """Yield the lines of a table in Markdown with one row for each configuration, the slowest first."""
    yield "| configuration | batch | runs | GPUs | samples/s | × fp32 | MFU | J/sample | peak memory |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    ratios = ratios_to_fp32(runs)
    by_speed = runs.groupby(CONFIGURATION)["throughput"].mean().sort_values()
    for levels in by_speed.index:
        rows = of_configuration(runs, dict(zip(CONFIGURATION, levels, strict=True)))
        cells = (
            label(rows),
            str(rows["batch_per_device"].iloc[0]),
            str(len(rows)),
            str(rows["gpu"].nunique()),
            over_gpus(rows["throughput"], rows["gpu"]),
            over_gpus(ratios[rows.index], rows["gpu"]),
            f"{rows['mfu'].mean():.3f}",
            f"{rows['energy_per_sample'].mean():.3f}" if rows["energy_per_sample"].notna().any() else "not sampled",
            f"{rows['peak_allocated_bytes'].mean() / 1e9:.1f} GB",
        )
        yield f"| {' | '.join(cells)} |"


def published_table(runs: pd.DataFrame) -> Iterator[str]:
    """Yield the lines of a table in Markdown: each published number, and ours."""
    yield "| published as | V100, samples/s | H100, samples/s |"
    yield "|---|--:|--:|"
    numbers = published.load()
    for name, levels in SAME_QUESTION.items():
        of_table = (numbers["source"] == PUBLISHED_SOURCE) & (numbers["table"] == name)
        [value] = numbers[of_table & (numbers["metric"] == "throughput") & (numbers["world_size"] == 1)]["value"]
        rows = of_configuration(runs, {"memory_format": "nchw", "compiler": "none", **levels})
        yield f"| `{name}`, one device | {plain(value)} | {over_gpus(rows['throughput'], rows['gpu'])} |"


def of_configuration(runs: pd.DataFrame, levels: dict[str, object]) -> pd.DataFrame:
    """Return the runs whose factors have these levels."""
    return runs[(runs[list(levels)] == pd.Series(levels)).all(axis="columns")]


def ratios_to_fp32(runs: pd.DataFrame) -> pd.Series:
    """Return the throughput of each run / that of fp32 with its batch in its measurement; NaN where it has none."""
    is_fp32 = (runs["precision"] == "fp32") & (runs["memory_format"] == "nchw")
    rates = np.log(runs["throughput"])
    denominators = rates[is_fp32].groupby([runs["measurement"], runs["batch_per_device"]]).mean()
    of_each_run = pd.MultiIndex.from_frame(runs[["measurement", "batch_per_device"]])
    return np.exp(rates - denominators.reindex(of_each_run).to_numpy())


def over_gpus(values: pd.Series, gpus: pd.Series) -> str:
    """Return the geometric mean of what each GPU reached, with its interval where there are enough of them."""
    estimate = Estimate.from_values(np.log(values).groupby(gpus).mean().dropna().to_numpy())
    interval = estimate.factor_interval() if gpus.nunique() >= MINIMUM_RUNS else None
    if interval is None:
        return plain(estimate.factor)
    return " ".join(format_bounded(estimate.factor, interval.low, interval.high))


def label(rows: pd.DataFrame) -> str:
    """Return the levels of a configuration that are not the usual ones, as the pages of a report name them."""
    levels = rows.iloc[0]
    named = [display_name(levels["precision"]), display_name(levels["memory_format"])]
    named += [display_name(levels[name]) for name in ("loss_scaling", "compiler") if levels[name] != "none"]
    if levels["cudnn_autotune"] != "default":
        named.append("autotuned")
    if levels["fused_optimizer"] != "default":
        named.append(f"update: {display_name(levels['fused_optimizer'])}")
    return ", ".join(named)


def main(path: Path = PAGE) -> None:
    """Write the page again."""
    path.write_text(page(path.read_text(encoding="utf-8"), pd.read_csv(RUNS)), encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
