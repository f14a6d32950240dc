"""The folder for a paper: compiled in two columns, with every number as the dataset has it."""

import re
import subprocess
from pathlib import Path

import pytest

from dlperf_study.__main__ import main
from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.dataset import collect
from dlperf_study.report import figures, tables
from dlperf_study.report.figures.style import COLUMN
from dlperf_study.report.macros import configuration_keys, short_names
from dlperf_study.report.paper import for_paper, has_numbers, write_paper
from dlperf_study.report.tables.latex import COLUMN_POINTS, PAGE_POINTS, latex_table
from dlperf_study.report.tables.table import Cell, Heading, Table
from tests.evidence_factory import Planned, Recipe, configuration, write_study
from tests.report.conftest import ALONE, TOGETHER, mixed_entries, study, write_titled
from tests.requirements import need

PACKAGES = r"\usepackage{array,booktabs,graphicx,textcomp,threeparttable}"
LENGTHS = f"\\setlength\\textwidth{{{PAGE_POINTS}pt}}\\setlength\\columnsep{{{PAGE_POINTS - 2 * COLUMN_POINTS + 18}pt}}"
LONG = "a sentence on what was observed in this run that is longer than a page is wide and must go on in a further line"


def compiled(folder: Path, document: str) -> str:
    """Return what pdflatex prints about a document; fails on an error in it."""
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", document]
    result = subprocess.run(command, cwd=folder, capture_output=True, timeout=120)
    printed = result.stdout.decode(errors="replace")
    assert result.returncode == 0, printed[-2000:]
    return printed


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The paper of a study of one and two devices. Look, don't touch."""
    paths = StudyPaths(tmp_path_factory.mktemp("paper") / "example")
    write_titled(paths, [Planned(configuration(), ALONE), Planned(configuration(devices_per_node=2), TOGETHER)])
    return write_paper(paths)


def test_the_document_compiles_and_nothing_is_too_wide(paths):
    need("pdflatex")
    dataset = write_titled(paths, mixed_entries())
    paper = write_paper(paths)
    compiled(paper, "paper")
    assert subprocess.run(["bibtex", "paper"], cwd=paper, capture_output=True).returncode == 0
    compiled(paper, "paper")
    printed = compiled(paper, "paper")
    assert re.findall(r"Overfull \\hbox.*|.*undefined.*", printed) == []
    macros = (paper / "macros.tex").read_text(encoding="utf-8")
    table = tables.measured(dataset)
    position = [heading.label for heading in table.headings].index("Speedup")
    cell = next(row[position] for row in table.rows if row[0].text == "2")
    assert f"/speedup}}{{{cell.text}$\\times$~{cell.interval}}} % Speedup" in macros


def test_methods_are_paragraphs_with_formulas_and_figures_fit_their_column(paths):
    write_titled(paths, mixed_entries())
    paper = write_paper(paths)
    text = (paper / "methods.tex").read_text(encoding="utf-8")
    titles = ["Workload", "System", "Runs", "Measurement", "Scaling", "Statistics"]
    assert re.findall(r"^\\paragraph\{(\w+)\.\}", text, re.MULTILINE) == titles
    assert text.count(r"\[") == text.count(r"\]") == 5
    document = (paper / "paper.tex").read_text(encoding="utf-8")
    options = set(re.findall(r"\\includegraphics(\[.*?\])?\{", document))
    assert options <= {r"[width=\columnwidth]", r"[width=\textwidth]", "[height=7.5in]"}
    for file in paper.rglob("*.tex"):
        assert "can't" not in file.read_text(encoding="utf-8"), file


def test_a_number_that_does_not_exist_stops_the_document(paths):
    need("pdflatex")
    write_study(paths, [Planned(configuration())])
    paper = write_paper(paths)
    lines = [r"\documentclass{article}\input{macros}\begin{document}\measured{example}{nothing}{speedup}\end{document}"]
    (paper / "wrong.tex").write_text("\n".join(lines))
    with pytest.raises(AssertionError, match='no number "example/nothing/speedup"'):
        compiled(paper, "wrong")


@pytest.mark.parametrize(("columns", "further"), [(3, True), (9, True), (14, True), (10, False)])
def test_a_table_fits_whatever_its_cells_hold(columns, further, tmp_path):
    """With more text beside the name its columns are wrapped or scaled; without, names are lines above the numbers."""
    need("pdflatex")
    headings = (
        Heading("Configuration"),
        *[Heading("Exposed communication", "samples/s", numeric=True, interval=True)] * columns,
        *[Heading("Diagnostic")] * further,
    )
    numbers = [Cell("12.3", "[−11.1, 13.9]", LONG)] * columns
    names = ("PaddlePaddle collective · all-reduce · 2 devices", 2 * LONG)
    rows = tuple((Cell(name), *numbers, *[Cell(LONG)] * further) for name in names)
    table = Table("wide", "Wide & long", LONG, headings, rows, groups=(2 * LONG, "short"))
    head = f"\\documentclass[twocolumn]{{article}}{PACKAGES}{LENGTHS}\\begin{{document}}"
    (tmp_path / "wide.tex").write_text(f"{head}{latex_table(table, 'example')}\\end{{document}}")
    assert re.findall(r"Overfull \\hbox.*", compiled(tmp_path, "wide")) == []


def test_names_of_configurations_are_unique():
    same_names = [configuration(seed=seed) for seed in (0, 1)]
    keys = configuration_keys(study(*map(Planned, (*same_names, configuration(devices_per_node=2)))))
    assert len(set(keys.values())) == 3
    assert [name == key for name, key in keys.items()] == [True, True, False]


def test_the_command_names_the_folder(paths, capsys):
    write_study(paths, [Planned(configuration())])
    assert main(["paper", "example"]) == 0
    assert capsys.readouterr().out == f"paper: {paths.paper}; paper.tex shows how each file is used\n"
    assert main(["paper", "example", "--quick"]) == 1


def test_a_study_of_failed_runs_has_nothing_to_publish(paths):
    write_study(paths, [Planned(configuration(), Recipe(status="failed", reason="no memory"))])
    with pytest.raises(RecordError, match="nothing to publish"):
        write_paper(paths)
    assert not paths.paper.exists()


def test_what_the_methods_cite_is_among_the_references(paths):
    write_study(paths, [Planned(configuration()), Planned(configuration(devices_per_node=2))])
    cited = set(re.findall(r"\\cite\{(\w+)\}", (write_paper(paths) / "methods.tex").read_text(encoding="utf-8")))
    assert cited
    assert cited == set(re.findall(r"@\w+\{(\w+),", (paths.paper / "references.bib").read_text(encoding="utf-8")))


def test_the_results_of_a_paper_have_the_numbers_of_its_macros(paper):
    sentences = (paper / "results.tex").read_text(encoding="utf-8")
    [(value, interval)] = re.findall(r"ResNet-50, 2 vs 1 device: speedup ([\d.]+)~(\[[^]]+\]), efficiency", sentences)
    macros = (paper / "macros.tex").read_text(encoding="utf-8")
    [full_name] = re.findall(r"\{dlperf@example@2 devices\}\{(.*)\}", macros)
    [printed] = re.findall(rf"dlperf@example/{re.escape(full_name)}/speedup\}}\{{(.*)\}} %", macros)
    assert printed.replace(r"$\times$", "") == f"{value}~{interval.replace('~', ' ')}"


def test_what_is_not_decided_takes_nothing_back_of_what_is(paths):
    """Of two series the one has a verdict, and both have their own baseline."""
    horovod = {"framework": "horovod_torch", "strategy": "all_reduce"}
    other, others = (configuration(devices_per_node=count, **horovod) for count in (1, 2))
    planned = [Planned(configuration(), ALONE), Planned(configuration(devices_per_node=2), TOGETHER)]
    write_titled(paths, [*planned, Planned(other, ALONE, baseline=other), Planned(others, TOGETHER, 2, baseline=other)])
    _, decided, undecided = (write_paper(paths) / "results.tex").read_text(encoding="utf-8").splitlines()
    assert "speedup 1.5" in decided
    assert "no speedup; fewer than 3 completed runs (2)." in undecided
    assert "Horovod" in undecided


def test_the_ends_of_an_interval_are_those_of_the_number(paper):
    macros = (paper / "macros.tex").read_text(encoding="utf-8")
    name = "[^}]*1n2d[^}]*/speedup"
    [(low, high)] = re.findall(rf"@{name}\}}\{{.*\[(.*), (.*)\]\}}", macros)
    assert re.findall(rf"@{name}/(?:low|high)\}}\{{([^}}]*)\}}", macros) == [low, high]


def test_names_that_fit_two_configurations_are_none():
    different = (configuration(), configuration(model="mobilenet_v2"), configuration(devices_per_node=2))
    names = set(short_names(study(*map(Planned, different))).values())
    assert names == {"ResNet-50, 1 device", "MobileNetV2, 1 device", "ResNet-50, 2 devices"}


def test_a_table_has_one_note_on_its_diagnostics_and_no_column_of_dashes():
    headings = (
        Heading("Devices", numeric=True),
        *(Heading(name, numeric=True, interval=True) for name in ("Speedup", "Overlap")),
    )
    rows = ((Cell("1"), Cell("2", "[1, 3]", "varies by 40 %"), Cell.missing("not run yet")),) * 2
    table = for_paper(study(Planned(configuration())), Table("any", "Any", "", headings, rows))
    assert [heading.label for heading in table.headings] == ["Devices", "Speedup"]
    assert "Speedup: " in table.caption
    assert "Overlap" not in table.caption
    assert table.notes == ("2 numbers of this table have diagnostics.",)
    assert table.footnotes == {}


def test_no_line_breaks_between_a_number_and_its_percent_sign(paper):
    written = "".join(file.read_text(encoding="utf-8") for file in paper.rglob("*.tex"))
    assert "95\\,\\%" in written
    assert re.findall(r".{0,30}[\d\]]\s+\\%", written) == []


def test_a_table_without_a_number_is_not_written():
    headings = (Heading("Devices", numeric=True), Heading("Factor", numeric=True, interval=True))
    rows = ((Cell("1"), Cell("1")), (Cell("2"), Cell.missing("not stated")))
    assert not has_numbers(for_paper(study(Planned(configuration())), Table("any", "Any", "", headings, rows)))


def test_a_name_is_never_that_of_another_configuration_once_the_study_grows():
    """A limit that all have is in no label; once it varies, what has none must not get the name of what has it."""
    limited = [configuration(cpu_limit=0.5, batch_per_device=batch) for batch in (4, 8)]
    grown = study(*map(Planned, [*limited, configuration(batch_per_device=4)]))
    before = short_names(study(*map(Planned, limited)))[limited[0].configuration_id]
    after = {name: configuration_id for configuration_id, name in short_names(grown).items()}
    assert len(after) == 3
    assert after.get(before, limited[0].configuration_id) == limited[0].configuration_id


def test_a_drawing_that_is_higher_than_a_page_is_not_written_for_a_column(paths):
    batches = [configuration(batch_per_device=batch) for batch in range(1, 41)]
    write_titled(paths, [Planned(each, ALONE, 3, baseline=each, reference=batches[0]) for each in batches])
    paper = write_paper(paths)
    written = {file.stem for file in (paper / "figures").iterdir()}
    heights = {}
    for figure in figures.comparison(collect(paths)):
        heights[figure.name] = figure.drawn(COLUMN).get_figheight()
        assert (f"{figure.name}{COLUMN.suffix}" in written) == (heights[figure.name] <= 9.0)
    assert max(heights.values()) > 9.0
    assert "too high for a column" in (paper / "paper.tex").read_text(encoding="utf-8")
