"""Formats that users declare for their own logs: the example of the docs, and what is wrong with a declaration."""

import json
import pickle
import re
import zipfile

import pytest

from dlperf_study.core.errors import DlperfStudyError, MetadataError
from dlperf_study.logs.blocks import LogSource
from dlperf_study.logs.identification import identify_logs
from dlperf_study.logs.log_reader import read_log
from dlperf_study.logs.own_format import read_own_format
from tests.logs.ingest.conftest import DOCS_FORMAT, declare, write_docs_format, write_docs_log, write_identity


def read_as(log, declaration):
    """Return a log that is read by a declared format."""
    return read_log(LogSource(log, own_format=read_own_format(declaration.encode(), "log_format.yaml")))


def test_a_log_is_read_by_the_format_of_the_docs(folder, ingested):
    write_docs_log(folder / "run_1.log")
    write_docs_format(folder)
    declare(folder, devices_per_node=4, batch_per_device=32)
    dataset = ingested()
    [run] = dataset.runs.itertuples()
    # It is the throughput of one of four ranks, which step together.
    assert run.throughput == pytest.approx(4 * 512.3)
    assert (run.log_format, run.printed_throughput, run.printed_lines) == (
        "our_trainer",
        "samples/s of one process",
        20,
    )
    assert run.final_loss == pytest.approx(6.71)
    assert not dataset.diagnostics["message"].str.contains("log_format|of no run").any()


def test_the_format_of_an_archive_names_the_program_of_logs_by_dlperf_names(folder, tmp_path):
    write_docs_log(folder / "1n1g" / "r50_b32_fp32_1.log")
    archive = tmp_path / "logs.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.write(folder / "1n1g" / "r50_b32_fp32_1.log", "1n1g/r50_b32_fp32_1.log")
        opened.writestr("log_format.yaml", DOCS_FORMAT)
    [configuration] = identify_logs(archive).study.configurations
    assert configuration.parameters["framework"] == "our_trainer"


def test_a_single_log_is_read_by_the_format_next_to_it(folder):
    log = folder / "1n1g_r50_b32_fp32_1.log"
    write_docs_log(log)
    write_docs_format(folder)
    write_identity(folder / "1n1g_r50_b32_fp32_1.metadata.yaml", [{"repetition": 1, "logs": [log.name]}])
    [file] = identify_logs(log).files
    assert file.source.own_format
    assert read_log(file.source).format.name == "our_trainer"
    # Processes that read large logs get it too.
    assert pickle.loads(pickle.dumps(file.source)).own_format == file.source.own_format


@pytest.mark.parametrize("name", ["log_format.yml", "Log_Format.yaml"])
def test_a_file_of_a_similar_name_is_not_ignored_in_silence(folder, refused, name):
    (folder / name).write_text(DOCS_FORMAT)
    with refused(DlperfStudyError):
        identify_logs(folder)


def test_the_nearest_format_counts_unless_a_different_one_is_named(folder, ingested):
    write_docs_format(folder, "img/s (mean", "seq/s (mean")
    write_docs_log(folder / "images" / "run_1.log")
    write_docs_format(folder / "images", "our_trainer", "images")
    declare(folder / "images")
    (folder / "named").mkdir()
    lines = [f"[Pass 0, train batch {step}] \tloss 1.0, lr 0.1, elapse 0.5000 sec\n" for step in range(30)]
    (folder / "named" / "run_1.log").write_text("".join(lines))
    declare(folder / "named", format="paddle_resnet50", model="vgg16")
    assert sorted(ingested().runs["log_format"]) == ["images", "paddle_resnet50"]


def test_two_formats_of_one_name_are_refused(folder, refused):
    write_docs_format(folder / "a")
    write_docs_format(folder / "b", "of: rank", "of: job")
    with refused(DlperfStudyError):
        identify_logs(folder)


@pytest.mark.parametrize(
    "change",
    [
        ("name: our_trainer", "name: timm"),
        ("name: our_trainer", "name: our-trainer"),
        ("unit: samples/s, of: rank}", "unit: img, of: rank}"),
        ("unit: samples/s, of: rank}", "unit: s/step, of: device}"),
        ("unit: samples/s, of: rank}", "unit: s since start, of: job, mean_since: start}"),
        ("of: rank}", "of: every}"),
        ("of: rank}", "off: rank}"),
        ("  rate:", "  rat:"),
        ("{mean}", "{rate}"),
        ('"it {step}/', '"{step}{loss}/'),
        ('- "it', '- "it"\n- "it'),
        ('- "it', '- "{step}, {loss}, {mean}"\n- "it'),
        ('- "it {step}/', '- "it {step:d}/'),
        ("{*} loss", "{2nd} loss"),
        ("lines:", "columns: {step: a}\nlines:"),
        ("numbers:", '- "loss {loss} |"\nnumbers:'),
        ("[eval]", "[eval, loss]"),
        ("[eval]", "['']"),
        ("mean_since: start", "mean_since: epoch"),
        ("mean_since: start", "steps: 10"),
        ("  rate:", "  loss: {unit: s/step, of: job}\n  rate:"),
        (re.search("numbers:.*(?=evaluation)", DOCS_FORMAT, re.DOTALL)[0], ""),
        ("lines:", "lines"),
        ('- "it', '- it {step}: loss {loss}\n- "it'),
    ],
    ids=lambda change: change[1].replace("\n", " "),
)
def test_a_wrong_declaration_is_named_with_file_key_value_and_choices(folder, refused, change):
    assert change[0] in DOCS_FORMAT
    write_docs_format(folder, *change, 1)
    with refused(DlperfStudyError):
        identify_logs(folder)


def test_a_clock_gives_the_time_of_a_step_before_what_a_line_says_of_it(folder):
    text = (
        "name: clock\nlines: ['step {step} after {clock} ms, {t} s per step, epoch {epoch}']\n"
        "numbers:\n  clock: {unit: ms since start, of: job}\n  t: {unit: s/step, of: job}\n"
    )
    log = folder / "log"
    log.write_text(
        "".join(f"step {step} after {200 * step} ms, 9.0 s per step, epoch 0.{step}\n" for step in (2, 4, 6))
    )
    parsed = read_as(log, text)
    series = parsed.series(parsed.throughput_metric)
    assert parsed.throughput_metric == "step_seconds"
    assert series.values["step_seconds"] == pytest.approx(0.2)
    assert (series.step.tolist(), series.epoch.tolist()) == ([4, 6], [0, 0])


def test_a_table_and_json_objects_are_read_by_columns(folder, ingested):
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
    assert runs.loc["bert_base", "printed_throughput"] == "tokens/s of each device"


def test_a_table_whose_cells_are_in_quotes_after_a_mark_of_utf_8_is_the_same(folder):
    text = 'name: t\ncolumns: {step: iter, rate: "img/s, mean"}\nnumbers: {rate: {unit: samples/s, of: job}}\n'
    rows = "".join(f'"{step}","{500 + step}.5"\n' for step in range(20))
    log = folder / "metrics.csv"
    log.write_text(f'"iter","img/s, mean"\n{rows}', encoding="utf-8-sig")
    parsed = read_as(log, text)
    series = parsed.series(parsed.throughput_metric)
    assert series.step.tolist() == list(range(20))
    assert series.values["throughput"][:2].tolist() == [500.5, 501.5]


@pytest.mark.parametrize(("thousands", "throughput"), [("true", 1500.5), ("false", None)])
def test_a_table_may_have_commas_between_thousands_where_that_is_declared(folder, thousands, throughput):
    number = f"{{unit: samples/s, of: job, thousands: {thousands}}}"
    declaration = f"name: t\ncolumns: {{step: iter, rate: rate}}\nnumbers: {{rate: {number}}}\n"
    log = folder / "metrics.csv"
    log.write_text("iter,rate\n" + "".join(f'{step},"1,50{step}.5"\n' for step in range(9)) + "9,900\n")
    parsed = read_as(log, declaration)
    throughputs = parsed.series("throughput").values["throughput"].tolist()
    assert (
        throughputs == [900] if throughput is None else throughputs == [*(throughput + step for step in range(9)), 900]
    )


@pytest.mark.parametrize("text", ["iter;rate\n1;500.0\n", "iter,speed\n1,500.0\n"])
def test_a_table_without_a_declared_column_is_refused_with_its_columns(folder, refused, text):
    declaration = "name: t\ncolumns: {step: iter, rate: rate}\nnumbers: {rate: {unit: samples/s, of: job}}\n"
    log = folder / "metrics.csv"
    log.write_text(text)
    with refused(DlperfStudyError):
        read_as(log, declaration)


@pytest.mark.parametrize(("unit", "scope"), [("img/s", "all"), ("images/sec", "job")])
def test_what_programs_print_for_samples_and_people_write_for_the_job_is_understood(unit, scope):
    declaration = "name: t\nlines: ['step={step} speed={speed}']\nnumbers: {speed: {unit: %s, of: %s}}\n"
    formats = [read_own_format((declaration % words).encode(), "f") for words in ((unit, scope), ("samples/s", "job"))]
    assert formats[0] == formats[1]


@pytest.mark.parametrize(
    ("line", "factor"),
    [
        ("step={step} loss={loss:.2f} speed={throughput:.1f} img/s", 1),
        (
            "2024-05-01 10:00:{step:02d} iter {step} | loss {loss:.3f} | lr 0.1 | {throughput:.1f} samples/sec | 9 GB",
            1,
        ),
        ("Epoch 1 [{step}/100] it's at throughput: {throughput:.1f}", 1),
        ("iteration {step} took {throughput:.2f} ms", None),
    ],
)
def test_for_an_unknown_program_the_files_to_write_are_in_the_message_and_are_right(folder, ingested, line, factor):
    lines = [line.format(step=step, loss=7 - step / 100, throughput=245 + step % 3) for step in range(1, 60)]
    (folder / "run.log").write_text("\n".join(["started", *lines]) + "\n")
    with pytest.raises(MetadataError) as error:
        identify_logs(folder)
    declaration, configuration = re.search(r"(name: .*?)\n\n.*?(\{\".*\})$", str(error.value), re.DOTALL).groups()
    (folder / "log_format.yaml").write_text(declaration)
    (folder / "configuration.json").write_text(configuration)
    [run] = ingested().runs.itertuples()
    expected = 246 if factor else json.loads(configuration)["batch_per_device"] * 8 / 0.246
    assert run.throughput == pytest.approx(expected, rel=0.01)


def test_logs_without_a_throughput_get_no_proposal(folder):
    (folder / "run.log").write_text("".join(f"read file {number} of 100\n" for number in range(50)))
    with pytest.raises(MetadataError, match=r"docs/import-logs\.md shows$"):
        identify_logs(folder)
