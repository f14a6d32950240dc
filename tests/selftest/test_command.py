"""The command, with studies that were constructed instead of measured: what it prints, writes and returns."""

import json
import socket
from functools import partial

import pytest

from dlperf_study.__main__ import main
from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import RunPaths, StudyPaths
from dlperf_study.execution import selftest_studies
from dlperf_study.execution.selftest_studies import PAIRS, pair_studies
from dlperf_study.machines.supervision import locks
from dlperf_study.machines.supervision.locks import lock
from dlperf_study.selftest import power
from dlperf_study.selftest.evaluation import analysis_code, evaluate
from dlperf_study.selftest.result import Status, last_result
from dlperf_study.study.plan import build_plan
from tests.evidence_factory import CODE, change
from tests.selftest.studies import pair_dataset, steps_dataset, straggler_dataset
from tests.study.examples import anything_goes, cluster

OTHERS = {"selftest_steps": steps_dataset, "selftest_straggler": partial(straggler_dataset, 1.25)}
NO_LINK = "only root can limit the bandwidth of an interface; run the self-test as root"


@pytest.fixture(autouse=True)
def machine_lock_file(tmp_path, monkeypatch):
    """Give the machine a lock of this test: nothing is measured here, and others may measure meanwhile."""
    file = tmp_path / "machine.lock"
    monkeypatch.setattr(locks, "machine_lock_file", lambda: file)
    return file


@pytest.fixture
def measured(monkeypatch):
    """Construct the evidence of each study that is to be measured; return their names."""
    names = []

    def run_study(plan, *_):
        names.append(plan.study)
        if plan.study in OTHERS:
            OTHERS[plan.study]()
        else:
            pair_dataset(int(plan.study[-2:]))

    monkeypatch.setattr(selftest_studies, "run_study", run_study)
    monkeypatch.setattr(selftest_studies, "link_obstacle", lambda: NO_LINK)
    monkeypatch.setattr(power, "SIMULATED_FOR_ERROR", 20)
    return names


@pytest.fixture
def evidence():
    """Evidence of the last self-test."""
    evidence = StudyPaths.of("selftest_pairs_01").plan_file
    evidence.parent.mkdir(parents=True)
    evidence.touch()
    return evidence


def test_every_pair_has_its_own_order_and_one_slowdown():
    studies = pair_studies(PAIRS, quick=False)
    assert len({study.name for study in studies}) == len({study.order_seed for study in studies}) == PAIRS
    slowdowns = []
    for study in studies:
        plan = build_plan(study, cluster(), anything_goes)
        injected = [entry.configuration.injected_slowdown for entry in plan.entries]
        assert [entry.configuration.replica for entry in plan.entries] == [0, 1, 1]
        assert injected[:2] == [0.0, 0.0]
        assert {entry.reference_id for entry in plan.entries} == {plan.entries[0].configuration.configuration_id}
        slowdowns.append(injected[2])
    assert sorted(slowdowns) == [0.02] * 6 + [0.05] * 7 + [0.1] * 7


def test_it_measures_checks_and_shows(measured, capsys, snapshot):
    assert main(["selftest", "--pairs", "2"]) == 0
    paths, out = StudyPaths.of("selftest"), capsys.readouterr().out
    assert measured == ["selftest_pairs_01", "selftest_pairs_02", *OTHERS]
    result = last_result()
    assert [check.status for check in result.checks] == [Status.PASSED] * 4 + [Status.SKIPPED, Status.PASSED]
    assert (result.quick, result.machine.host, result.code) == (True, "host-a", CODE)
    assert result.analysis_code == analysis_code()
    assert NO_LINK in out
    assert out == snapshot
    assert out.splitlines()[-1] == f"self-test passed; report: {paths.report_page}"
    page = paths.report_page.read_text()
    assert "pairs_02" in page
    assert NO_LINK in page
    assert not paths.selftest_unfinished.exists()


def test_a_failed_run_leaves_a_check_undecided_and_is_measured_again(measured, monkeypatch, capsys, snapshot):
    monkeypatch.setattr(selftest_studies, "run_study", lambda plan, *_: _without_last_run(plan))
    assert main(["selftest", "--pairs", "1"]) == 1
    assert last_result().checks[1].status is Status.UNDECIDED
    assert last_result().checks[1].seen == snapshot
    out = capsys.readouterr().out
    assert out == snapshot
    assert StudyPaths.of("selftest").selftest_unfinished.exists()


def test_runs_of_several_machines_are_refused_by_their_names_in_order(refused):
    pair_dataset(1)
    runs = sorted(StudyPaths.of("selftest_pairs_01").folder.rglob("run.json"))
    environment = json.loads(runs[0].read_text())["environment"]
    for number, file in enumerate(runs):
        environment["hardware"]["cpu_model"] = f"CPU {number}"
        change(RunPaths(file.parent), environment=environment)
    with refused(RecordError):
        evaluate(["selftest_pairs_01"], {}, {}, 0.0, quick=True)
    for file in runs:
        file.unlink()
    with refused(RecordError):
        evaluate(["selftest_pairs_01"], {}, {}, 0.0, quick=True)


def _without_last_run(plan):
    if plan.study in OTHERS:
        OTHERS[plan.study]()
        return
    rows = pair_dataset(1).configurations
    [configuration_id] = rows.loc[rows["injected_slowdown"] > 0, "configuration_id"]
    StudyPaths.of(plan.study).configuration(configuration_id).run(3).run_file.unlink()


@pytest.mark.parametrize(("unfinished", "is_continued"), [('{"pairs": 2, "quick": false}', True), ("", False)])
def test_an_interrupted_one_continues_and_a_finished_one_is_measured_anew(evidence, unfinished, is_continued):
    paths = StudyPaths.of("selftest")
    if unfinished:
        paths.selftest_unfinished.write_text(unfinished)
    selftest_studies._begin(2, False)
    assert evidence.exists() == is_continued
    kept = paths.folder / "earlier" / "1" / "selftest_pairs_01" / evidence.name
    assert kept.exists() != is_continued
    assert json.loads(paths.selftest_unfinished.read_text()) == {"pairs": 2, "quick": False}


def test_the_evidence_of_every_earlier_one_is_kept():
    paths, evidence = StudyPaths.of("selftest"), StudyPaths.of("selftest_pairs_01").plan_file
    for number in (1, 2):
        evidence.parent.mkdir(parents=True)
        evidence.write_text(str(number))
        selftest_studies._begin(2, quick=True)
        paths.selftest_unfinished.unlink()
    earlier = paths.folder / "earlier"
    kept = {str(file.relative_to(earlier)): file.read_text() for file in sorted(earlier.rglob("plan.json"))}
    assert kept == {"1/selftest_pairs_01/plan.json": "1", "2/selftest_pairs_01/plan.json": "2"}


def test_on_a_busy_machine_nothing_of_the_last_one_is_touched(evidence, machine_lock_file, capsys, snapshot):
    with lock(machine_lock_file, "measuring study other", "would"):
        assert main(["selftest", "--quick"]) == 1
    assert capsys.readouterr().err == snapshot
    assert evidence.exists()
    assert not StudyPaths.of("selftest").selftest_unfinished.exists()


def test_where_it_can_not_run_nothing_of_the_last_one_is_touched(evidence, monkeypatch, capsys, snapshot):
    monkeypatch.setattr(selftest_studies, "_obstacle", lambda plan: "no library")
    assert main(["selftest", "--quick"]) == 1
    assert capsys.readouterr().err == snapshot
    assert evidence.exists()


@pytest.mark.parametrize("pairs", ["0", "100", "x"])
def test_a_number_of_pairs_has_bounds(pairs, capsys):
    with pytest.raises(SystemExit):
        main(["selftest", "--pairs", pairs])
    assert f"'{pairs}' is not a number" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("user", "programs", "reason"),
    [(1000, True, NO_LINK), (0, False, "unshare, ip, tc not found; install iproute2 and util-linux")],
)
def test_without_root_or_programs_no_link_is_shaped(monkeypatch, user, programs, reason):
    monkeypatch.setattr(selftest_studies.os, "geteuid", lambda: user)
    monkeypatch.setattr(selftest_studies.shutil, "which", lambda name: name if programs else None)
    assert selftest_studies.link_obstacle() == reason


def test_two_selftests_at_once_would_put_each_others_evidence_aside(capsys):
    with lock(StudyPaths.of("selftest").lock, "running the self-test", "would"):
        assert main(["selftest"]) == 1
    assert "is running the self-test" in capsys.readouterr().err
    assert not StudyPaths.of("selftest").selftest_unfinished.exists()


@pytest.mark.parametrize(("address", "is_added"), [("10.1.2.3", True), ("127.0.1.1", False), (None, False)])
def test_the_address_of_the_host_is_in_the_namespace_too(monkeypatch, address, is_added):
    def resolve(_):
        if address is None:
            raise socket.gaierror
        return address

    monkeypatch.setattr(selftest_studies.socket, "gethostbyname", resolve)
    assert ("ip address add 10.1.2.3/32 dev lo" in selftest_studies._in_namespace("true")[4]) == is_added
