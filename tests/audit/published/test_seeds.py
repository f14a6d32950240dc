"""Every cell of every table of the five studies, printed again from the data and compared with the page's own text."""

import ast
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from dlperf_study.audit.published import load_source, printed_table, read_source

SEEDS = Path(__file__).parent / "seeds"
Grid = list[list[str]]


def text(name: str) -> str:
    return (SEEDS / name).read_text(encoding="utf-8")


def printed(source: str, table: str) -> Grid:
    """Return a printed table with its head, row labels split where several stand in one."""
    frame = printed_table(load_source(source), table)
    rows = [[*read_source(source).tables[table].rows.split(" | "), *frame.columns]]
    for label, cells in zip(frame.index, frame.to_numpy().tolist(), strict=True):
        rows.append([*label.split(" | "), *cells])
    return rows


def rendered(source: str, table: str) -> list[tuple[str, str, str]]:
    """Return row label, column label and text of every place where something is printed."""
    places = printed_table(load_source(source), table).stack()
    return [(row, column, cell) for (row, column), cell in places.items() if cell]


class _Tables(HTMLParser):
    """Tables of a page under the heading before each."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, Grid] = {}
        self._heading = self._open = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._open = tag
        if tag == "tr":
            self.tables.setdefault(self._heading, []).append([])

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open == "h3":
            self._heading = data
        elif self._open in ("th", "td"):
            self.tables[self._heading][-1].append(data.strip())


def html_tables(name: str) -> dict[str, Grid]:
    parser = _Tables()
    parser.feed(text(name))
    return parser.tables


def bar_tables(name: str) -> list[Grid]:
    """Return the tables whose cells are divided by bars, without the lines below their heads."""
    lines = [line.strip("| ") for line in text(name).splitlines() if line.count("|") >= 2 and "---" not in line]
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    starts = [index for index, row in enumerate(rows) if not row[-1][0].isdigit()]
    return [rows[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]


@pytest.mark.parametrize("title", html_tables("000.html"))
def test_vgg16_on_parameter_servers(title):
    (table,) = [name for name, known in read_source("paddle_vgg16_cluster").tables.items() if known.title == title]
    assert printed("paddle_vgg16_cluster", table) == html_tables("000.html")[title]


def test_vgg16_has_no_other_table():
    assert len(read_source("paddle_vgg16_cluster").tables) == len(html_tables("000.html")) == 4


DLPERF = [
    ("dlperf_paddle_plsc", "001.txt", ["fp32_b128"]),
    ("dlperf_paddle_resnet50", "002.txt", ["fp32_b128", "fp16_b224", "fp16_b224_static", "fp16_b196_dali"]),
]
every_dlperf = pytest.mark.parametrize(("source", "file", "tables"), DLPERF, ids=[one[0] for one in DLPERF])


@every_dlperf
def test_tables_of_dlperf(source, file, tables):
    assert [printed(source, table) for table in tables] == bar_tables(file)
    assert set(read_source(source).tables) == {*tables, "runs", "result"}


@every_dlperf
def test_run_lists_of_dlperf_line_by_line(source, file, tables):
    """The extractor prints, for each log, all runs of its folder that it has read so far."""
    so_far: dict[str, list[str]] = {}
    lines = []
    for log, run, throughput in rendered(source, "runs"):
        runs = so_far.setdefault(log.rpartition("/")[0], [])
        runs.append(f"{run}: {throughput}")
        lines.append(f"{log} {{{', '.join(runs)}}}")
    assert lines == [line for line in text(file).splitlines() if line.startswith("logs/")]


@every_dlperf
def test_results_of_dlperfs_extractor_number_by_number(source, file, tables):
    (written,) = re.findall(r"\{'r50'.*?\}\}\}", text(file), re.DOTALL)
    cases = {
        case: {name: str(value) for name, value in one.items()}
        for case, one in ast.literal_eval(written)["r50"].items()
    }
    assert printed_table(load_source(source), "result").to_dict("index") == cases


def test_elasticdls_tables():
    minikube = ("minikube_resnet50", "minikube_mobilenet_v2")
    asi = ("cpu_mobilenet_v2", "cpu_resnet50", "gpu_mobilenet_v2", "gpu_resnet50")
    rows = [row for table in (*minikube, *asi) for row in printed("elasticdl_allreduce_wiki", table)]
    expected = [line for line in text("003.txt").splitlines() if re.match(r"Workers |\d( \(local\))? [\d-]", line)]
    assert [" ".join(row) for row in rows] == expected


def test_elasticdls_profiles_and_its_arithmetic():
    """Log lines are the cells of the profiles; of the arithmetic the column's label begins the line."""
    logged, computed = [], []
    for model in ("resnet50", "mobilenet_v2"):
        logged += [cell for _, _, cell in rendered("elasticdl_allreduce_wiki", f"minikube_{model}_profile")]
        arithmetic = rendered("elasticdl_allreduce_wiki", f"minikube_{model}_arithmetic")
        computed += [column + cell for _, column, cell in arithmetic]
    lines = text("003.txt").splitlines()
    assert logged == [line for line in lines if line.startswith("[")]
    assert sorted(computed) == sorted(line for line in lines if "=" in line)


def test_no_line_of_elasticdls_page_with_a_number_is_left():
    read = re.compile(r"Workers |\d( \(local\))? [\d-]|\[|.*=")
    others = [line for line in text("003.txt").splitlines() if not read.match(line)]
    assert {line for line in others if re.search(r"\d", line)} <= {
        *(f"{count} workers" for count in (2, 3)),
        *("1 worker (local):", "2 workers:", "Resnet50", "MobileNetV2"),
    }


def test_tensorpacks_tables():
    tables = ("p100_replicated", "p100_parameter_server")
    assert [printed("tensorpack_multigpu", table) for table in tables] == bar_tables("004.txt")


def test_tensorpacks_results():
    """The page's text has lost the line ends between one result and the options of the next."""
    lines = [
        row + cell for table in ("v100_tf1", "v100_tf2") for row, _, cell in rendered("tensorpack_multigpu", table)
    ]
    of_page = [line for line in text("004.txt").splitlines() if line.startswith(("--fake", ": "))]
    assert "".join(lines) == "".join(of_page)
