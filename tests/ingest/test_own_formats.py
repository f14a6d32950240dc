"""Formats that users declare for their own logs: the example of the docs, and what is wrong with a declaration."""

import pickle
import re
import zipfile
from pathlib import Path

import pytest

from dlperf_study.errors import DlperfStudyError
from dlperf_study.ingest.identification import identify_logs
from dlperf_study.logs.log_reader import read_log
from dlperf_study.logs.log_source import LogSource
from dlperf_study.logs.own_format import read_own_format
from dlperf_study.paths import PROJECT
from tests.ingest.conftest import REQUIRED_METADATA, Ingest, declare, reason

DOCS = (PROJECT / "docs" / "ingest.md").read_text()
EXAMPLE = re.search(r"<!-- own format: .*?```yaml\n(.*?)```", DOCS, re.DOTALL)[1]  # type: ignore[index]
[LINE] = re.findall(r"```text\n(.*?)\n```", DOCS[: DOCS.index(EXAMPLE)].rpartition("## A format of your own")[2])


def write_docs_log(path: Path, steps: int = 20) -> None:
    """Write lines like that of the docs: 512.3 images/s after a start-up of two, and an evaluation after each ten."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        for step in range(1, steps + 1):
            line = LINE.replace("it 20/", f"it {step * 20}/").replace(":05", f":{step:02}")
            file.write((line.replace("512.3", "100.0") if step < 3 else line) + "\n")
            if step % 10 == 0:
                file.write(line.replace("] it", "] eval it").replace("512.3", "9000.0") + "\n")


def test_a_log_is_read_by_the_format_of_the_docs(folder: Path, ingested: Ingest) -> None:
    write_docs_log(folder / "run_1.log")
    (folder / "log_format.yaml").write_text(EXAMPLE)
    declare(folder, devices_per_node=4, batch_per_device=32)
    dataset = ingested()
    [run] = dataset.runs.itertuples()
    # It is the rate of one of four ranks, which step together.
    assert run.throughput == pytest.approx(4 * 512.3)
    assert (run.log_format, run.printed_rate, run.printed_lines) == ("our_trainer", "samples/s of one process", 20)
    assert run.final_loss == pytest.approx(6.71)
    assert not dataset.diagnostics["message"].str.contains("log_format|of no run").any()


def test_the_format_of_an_archive_names_the_program_of_logs_by_dlperf_names(folder: Path, tmp_path: Path) -> None:
    write_docs_log(folder / "1n1g" / "r50_b32_fp32_1.log")
    archive = tmp_path / "logs.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.write(folder / "1n1g" / "r50_b32_fp32_1.log", "1n1g/r50_b32_fp32_1.log")
        opened.writestr("log_format.yaml", EXAMPLE)
    [configuration] = identify_logs(archive).identity.configurations
    assert configuration.parameters["framework"] == "our_trainer"


def test_a_single_log_is_read_by_the_format_next_to_it(folder: Path) -> None:
    log = folder / "1n1g_r50_b32_fp32_1.log"
    write_docs_log(log)
    (folder / "log_format.yaml").write_text(EXAMPLE)
    (folder / "1n1g_r50_b32_fp32_1.identity.yaml").write_text(
        "confirmed: true\nstudy: logs\nscaling: weak\nbaseline: {devices_per_node: 1}\n"
        f"configurations:\n- {{{', '.join(f'{name}: {value}' for name, value in REQUIRED_METADATA.items())}, "
        f"runs: [{{repetition: 1, logs: [{log.name}]}}]}}\n"
    )
    [file] = identify_logs(log).files
    assert file.source.own_format
    assert read_log(file.source).format.name == "our_trainer"
    # Processes that read large logs get it too.
    assert pickle.loads(pickle.dumps(file.source)).own_format == file.source.own_format


@pytest.mark.parametrize("name", ["log_format.yml", "Log_Format.yaml"])
def test_a_file_of_a_similar_name_is_not_ignored_in_silence(folder: Path, name: str) -> None:
    (folder / name).write_text(EXAMPLE)
    with pytest.raises(DlperfStudyError, match=f"^{name}: is not read; name it log_format.yaml"):
        identify_logs(folder)


def test_the_nearest_format_counts_unless_a_different_one_is_named(folder: Path, ingested: Ingest) -> None:
    (folder / "log_format.yaml").write_text(EXAMPLE.replace("img/s (mean", "seq/s (mean"))
    write_docs_log(folder / "images" / "run_1.log")
    (folder / "images" / "log_format.yaml").write_text(EXAMPLE.replace("our_trainer", "images"))
    declare(folder / "images")
    (folder / "named").mkdir()
    lines = [f"[Pass 0, train batch {step}] \tloss 1.0, lr 0.1, elapse 0.5000 sec\n" for step in range(30)]
    (folder / "named" / "run_1.log").write_text("".join(lines))
    declare(folder / "named", format="paddle_resnet50", model="vgg16")
    assert sorted(ingested().runs["log_format"]) == ["images", "paddle_resnet50"]


def test_two_formats_of_one_name_are_refused(folder: Path) -> None:
    for name, text in (("a", EXAMPLE), ("b", EXAMPLE.replace("of: rank", "of: job"))):
        declare(folder / name)
        (folder / name / "log_format.yaml").write_text(text)
    with pytest.raises(DlperfStudyError, match=r"a/log_format.yaml and b/log_format.yaml are both named 'our_trainer'"):
        identify_logs(folder)


def test_a_log_unlike_its_declared_format_is_refused_with_a_line_of_it(folder: Path, ingested: Ingest) -> None:
    write_docs_log(folder / "run_1.log")
    write_docs_log(folder / "run_2.log")
    log = folder / "run_2.log"
    log.write_text(log.read_text().replace("loss 6.71", "loss: 6,71"))
    (folder / "log_format.yaml").write_text(EXAMPLE)
    declare(folder)
    dataset = ingested()
    assert reason(dataset, 1) == ""
    expected = "run_2.log: no line of training in the format our_trainer of log_format.yaml; 20 lines have its text"
    assert expected in reason(dataset, 2)
    assert "line 1: '[2026-03-01 10:00:01] it 20/400 loss: 6,71" in reason(dataset, 2)
    assert reason(dataset, 2).endswith("; the first is as declared up to 'it {step}/{*} loss'")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("name: our_trainer", "name: timm"), "log_format.yaml: name is 'timm', which is a format already"),
        (("unit: samples/s, of: rank}", "unit: img/s, of: rank}"), "numbers.rate.unit is 'img/s'; the choices are"),
        (("of: rank}", "of: all}"), "numbers.rate.of is 'all'; the choices are 'job', 'rank' or 'device'"),
        (("of: rank}", "off: rank}"), "unknown key numbers.rate.off; did you mean of?"),
        (("  rate:", "  rat:"), "numbers has no entry 'rate'; did you mean rat?"),
        (("  rate:", "  rat:"), "numbers.rat is in none of the lines"),
        (("{mean}", "{rate}"), "{rate} appears 2 times"),
        (('"it {step}/', '"{step}{loss}/'), "no text is between {step} and {loss}"),
        (("unit: samples/s, of: rank}", "unit: s/step, of: device}"), "numbers.rate is"),
        (("lines:", "columns: {step: a}\nlines:"), "must have either lines, of a text, or columns"),
        (('- "it', '- "it"\n- "it'), "lines[0] is 'it'; it has no number in braces"),
        (('- "it {step}/', '- "it {step:d}/'), "{step:d} is no name in braces: a name has letters, digits and _ only"),
        (("{*} loss", "{2nd} loss"), "{2nd} is no name in braces"),
        (("name: our_trainer", "name: our-trainer"), "name is 'our-trainer'; it must begin with a letter"),
        (
            ("numbers:", '- "loss {loss} |"\nnumbers:'),
            "lines[0] and lines[1] both match 'it 1/text loss 1 | 1 img/s (mean 1) |', which would be read twice",
        ),
        (("[eval]", "[eval, loss]"), "evaluation[1] is 'loss', which every line of lines[0] has"),
        (("[eval]", "['']"), "evaluation[0] is '', which every line of lines[0] has"),
        (("mean_since: start", "mean_since: epoch"), "a mean since each epoch began needs the number epoch"),
        (("mean_since: start", "steps: 10"), "numbers.mean is"),
        (("  rate:", "  loss: {unit: s/step, of: job}\n  rate:"), "numbers.loss has a meaning of its own"),
        ((re.search("numbers:.*(?=evaluation)", EXAMPLE, re.DOTALL)[0], ""), "numbers is missing"),  # type: ignore[index]
        (("lines:", "lines"), "log_format.yaml, line 3"),
        (('- "it', '- it {step}: loss {loss}\n- "it'), "which is not a string; a text that begins with { or [, or"),
    ],
)
def test_a_wrong_declaration_is_named_with_file_key_value_and_choices(
    folder: Path, change: tuple[str, str], message: str
) -> None:
    assert change[0] in EXAMPLE
    (folder / "log_format.yaml").write_text(EXAMPLE.replace(*change, 1))
    with pytest.raises(DlperfStudyError, match=re.escape(message)):
        identify_logs(folder)


def test_a_clock_gives_the_time_of_a_step_before_what_a_line_says_of_it(folder: Path) -> None:
    text = (
        "name: clock\nlines: ['step {step} after {clock} ms, {t} s per step, epoch {epoch}']\n"
        "numbers:\n  clock: {unit: ms since start, of: job}\n  t: {unit: s/step, of: job}\n"
    )
    log = folder / "log"
    log.write_text(
        "".join(f"step {step} after {200 * step} ms, 9.0 s per step, epoch 0.{step}\n" for step in (2, 4, 6))
    )
    parsed = read_log(LogSource(log, own_format=read_own_format(text.encode(), "log_format.yaml")))
    series = parsed.series(parsed.rate_metric)
    assert parsed.rate_metric == "step_seconds"
    assert series.values["step_seconds"] == pytest.approx(0.2)
    assert (series.step.tolist(), series.epoch.tolist()) == ([4, 6], [0, 0])


def test_a_table_and_json_objects_are_read_by_columns(folder: Path, ingested: Ingest) -> None:
    (folder / "log_format.yaml").write_text(
        "name: our_table\n"
        'columns: {step: iter, rate: "tokens/s", ms: dt (ms), unix_time: t}\n'
        "numbers:\n"
        "  ms: {unit: ms/step, of: job, steps: 10}\n"
        "  rate: {unit: tokens/s, of: device}\n"
    )
    rows = [(step, 50_000 + step, 2500.0 + step % 3, 1.8e9 + step * 0.2503, "") for step in range(0, 200, 10)]
    table = [",".join(map(str, row)) for row in [("iter", "tokens/s", "dt (ms)", "t", "note"), *rows]]
    (folder / "table" / "run_1").mkdir(parents=True)
    (folder / "table" / "run_1" / "metrics.csv").write_text("\n".join(table) + "\n")
    objects = [f'{{"iter": {row[0]}.0, "tokens/s": {row[1]}, "other": "x"}}\n' for row in rows]
    (folder / "json").mkdir()
    (folder / "json" / "run_1.jsonl").write_text("".join([*objects, '{"eval": 1}\n']))
    declare(folder / "table", devices_per_node=2)
    declare(folder / "json", devices_per_node=2, model="bert_base", tokens_per_sample=512)
    runs = ingested().runs.set_index("model")
    assert runs.loc["resnet50", "throughput"] == pytest.approx(256 / 0.2501, rel=1e-3)
    assert runs.loc["resnet50", "wall_throughput"] == pytest.approx(256 / 0.2503, rel=1e-3)
    assert runs.loc["bert_base", "throughput"] == pytest.approx(2 * 50_095 / 512, rel=1e-2)
    assert runs.loc["bert_base", "printed_rate"] == "tokens/s of each device"


def test_a_table_whose_cells_are_in_quotes_after_a_mark_of_utf_8_is_the_same(folder: Path) -> None:
    text = 'name: t\ncolumns: {step: iter, rate: "img/s, mean"}\nnumbers: {rate: {unit: samples/s, of: job}}\n'
    rows = "".join(f'"{step}","{500 + step}.5"\n' for step in range(20))
    log = folder / "metrics.csv"
    log.write_text(f'"iter","img/s, mean"\n{rows}', encoding="utf-8-sig")
    parsed = read_log(LogSource(log, own_format=read_own_format(text.encode(), "log_format.yaml")))
    series = parsed.series(parsed.rate_metric)
    assert series.step.tolist() == list(range(20))
    assert series.values["throughput"][:2].tolist() == [500.5, 501.5]


@pytest.mark.parametrize(("thousands", "rate"), [("true", 1500.5), ("false", None)])
def test_a_table_may_have_commas_between_thousands_where_that_is_declared(
    folder: Path, thousands: str, rate: float | None
) -> None:
    number = f"{{unit: samples/s, of: job, thousands: {thousands}}}"
    declaration = f"name: t\ncolumns: {{step: iter, rate: rate}}\nnumbers: {{rate: {number}}}\n"
    log = folder / "metrics.csv"
    log.write_text("iter,rate\n" + "".join(f'{step},"1,50{step}.5"\n' for step in range(9)) + "9,900\n")
    parsed = read_log(LogSource(log, own_format=read_own_format(declaration.encode(), "log_format.yaml")))
    rates = parsed.series("throughput").values["throughput"].tolist()
    assert rates == [900] if rate is None else rates == [*(rate + step for step in range(9)), 900]


@pytest.mark.parametrize("text", ["iter;rate\n1;500.0\n", "iter,speed\n1,500.0\n"])
def test_a_table_without_a_declared_column_is_refused_with_its_columns(folder: Path, text: str) -> None:
    declaration = "name: t\ncolumns: {step: iter, rate: rate}\nnumbers: {rate: {unit: samples/s, of: job}}\n"
    log = folder / "metrics.csv"
    log.write_text(text)
    with pytest.raises(DlperfStudyError, match=r"no row of a table \(.csv\) or .* with one of its columns .*iter"):
        read_log(LogSource(log, own_format=read_own_format(declaration.encode(), "log_format.yaml")))
