"""All that the reading arm makes of the golden study, as texts: by kind, and by the name of a file."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
import pytest
from matplotlib.figure import Figure as Drawing
from matplotlib.layout_engine import ConstrainedLayoutEngine

from dlperf_study.__main__ import main
from dlperf_study.core.paths import OUTPUTS_VARIABLE, REPORT_VARIABLE
from dlperf_study.core.resources import notebook
from dlperf_study.dataset.history import study_measurements
from tests.golden_study.texts import columns_text, drawing_text, notebook_text, rows_text

STUDY = "golden_study"
PAGES = (
    *("summary", "comparison", "scaling", "communication", "published", "audit", "quality"),
    *("resources", "history", "runs"),
)

#: Texts by the names of their files, and these by kind.
Texts = Mapping[str, str]
GoldenStudy = Mapping[str, Texts]


def build(outputs: Path, patch: pytest.MonkeyPatch, name: str = STUDY, notebooks: Iterable[str] = PAGES) -> GoldenStudy:
    """Collect the evidence in ``outputs``, execute the notebooks of the report here, and write the paper."""
    folder = outputs / name
    patch.setenv(OUTPUTS_VARIABLE, str(outputs))
    figures = record_drawings(patch)
    assert main(["report", name, "--data-only"]) == 0
    # While a report is built, no tables are made: those of earlier dates are there before.
    study_measurements(name)
    with patch.context() as building:
        building.setenv(REPORT_VARIABLE, str(folder))
        pages = {page: notebook_text(notebook(page), name) for page in notebooks}
    assert main(["paper", name]) == 0
    study = {
        "dataset": dict(dataset_texts(folder / "dataset")),
        "pages": pages,
        "tables": file_texts(folder / "tables", "*.csv"),
        "figures": figures,
        "paper": file_texts(folder / "paper", "**/*.tex"),
    }
    return {kind: without_folder(texts, outputs) for kind, texts in study.items()}


def without_folder(texts: Texts, outputs: Path) -> Texts:
    """Return texts with the same name for the folder of outputs, wherever it is."""
    return {name: text.replace(str(outputs), "outputs") for name, text in texts.items()}


def dataset_texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the tables of a dataset; of the steps the sums of each window, which change with any step."""
    for name in ("runs", "configurations"):
        yield name, columns_text(pd.read_parquet(folder / f"{name}.parquet"))
    yield "diagnostics", rows_text(pd.read_parquet(folder / "diagnostics.parquet"))
    steps = pd.read_parquet(folder / "steps.parquet")
    windows = steps.drop(columns="rank").groupby(["configuration_id", "window"], observed=True, sort=True)
    yield "steps", rows_text(windows.sum().reset_index())


def file_texts(folder: Path, pattern: str) -> dict[str, str]:
    """Return the text of each file."""
    return {file.stem: file.read_text(encoding="utf-8") for file in sorted(folder.glob(pattern))}


def record_drawings(patch: pytest.MonkeyPatch) -> Texts:
    """Return what will have the text of each figure as wide as a page; matplotlib neither lays out nor draws any."""
    texts: dict[str, str] = {}

    def save(drawing: Drawing, target: Path | BinaryIO, **_: Any) -> None:
        if isinstance(target, Path):
            target.touch()
            if not target.stem.endswith("-column"):
                texts[target.stem] = drawing_text(drawing)
        else:
            target.write(b"<svg></svg>")

    patch.setattr(Drawing, "savefig", save)
    patch.setattr(ConstrainedLayoutEngine, "execute", lambda *_: None)
    return texts
