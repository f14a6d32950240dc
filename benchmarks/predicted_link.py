"""A prediction against this machine: four hosts over links of known rate, predicted from one and two of them.

Launch from the root of the project, as root: ``python -m benchmarks.predicted_link [--rate 50mbit]``. The
hosts are network namespaces of this machine, each with a shaped link of its own, and share its cores; a step mostly
transfers, and the link does not depend on the load. It prints what the ring of nodes says of four hosts, and what was
measured there, and ends with 1 if the 90 % interval of the prediction does not reach that of the measurement. Where no
hosts can be made it says so and ends with 0.
"""

import argparse
import os
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from dlperf_study.core.wording import counted
from dlperf_study.dataset.dataset import Dataset, collect
from dlperf_study.metrics.statistics import Interval
from dlperf_study.prediction.curves import Unit
from dlperf_study.prediction.intervals import interval, tested_score
from dlperf_study.prediction.node_ring import predicted_log_throughput
from dlperf_study.report.tables.prediction_tables import study_curves
from tests.command_line import finish, workplace
from tests.machines.clusters.namespaces import Host, namespaces
from tests.machines.clusters.ssh_hosts import SERVER, running_servers

STUDY = """\
title: Four hosts over links of known rate
about: Measured on one, two and four hosts.
sections: [scaling, communication, prediction]
scaling: weak
constants: {framework: paddle_collective, strategy: all_reduce, model: mobilenet_v2, image_size: 32, classes: 10}
factors: {nodes: [1, 2, 4], batch_per_device: [4]}
baseline: {nodes: 1}
measurement:
  {warmup_steps: 1, max_warmup_seconds: 0, measured_steps: 4, compute_only_steps: 4, communication_only_steps: 3,
   repetitions: 3, timeout_seconds: 900}
"""
CLUSTER = """\
launcher: ssh
hosts: [{hosts}]
devices_per_node: 1
device: cpu
device_name: a CPU
interconnect: {rate}
shared_files: false
work_folder: {work}
idle: {{max_busy_cores: 1000, wait_seconds: 0}}
ssh: {{config_file: {config}}}
"""
#: How long the study may take.
LIMIT_SECONDS = 3600
PROGRAMS = (SERVER, "ip", "tc", "unshare", "ssh", "ssh-keygen")


def measure(rate: str, folder: Path) -> Dataset:
    """Measure the study on hosts with links of this rate; return its dataset. At the end no host is left."""
    with ExitStack() as stack:
        hosts: tuple[Host, ...] = stack.enter_context(namespaces())
        parameter_servers = stack.enter_context(running_servers(folder, hosts))
        for host in hosts:
            host.shape(rate)
        (parameter_servers.hidden / "study").mkdir()
        names = ", ".join(host.name for host in hosts)
        cluster = CLUSTER.format(hosts=names, rate=rate, work=parameter_servers.work, config=parameter_servers.config)
        place = workplace(parameter_servers.hidden / "study", STUDY, cluster, shares_machine=True)
        done = finish(place.start("run"), LIMIT_SECONDS)
        if done.returncode:
            raise SystemExit(f"the study ended with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return collect(place.study)


def compare(dataset: Dataset) -> bool:
    """Print the predictions for four hosts and what was measured; return whether the intervals meet."""
    [whole] = [curve for curve in study_curves(dataset) if curve.unit == Unit.NODE]
    curve, measured = whole.until(2), whole.last
    log_throughput, score = predicted_log_throughput(curve, measured.units), tested_score(curve, measured.units)
    if isinstance(score, str):
        raise SystemExit(f"no interval: {score}")
    predicted = interval(curve, score, log_throughput)
    of_measured = measured.log_throughput.factor_interval() or Interval(measured.throughput, measured.throughput)
    print(f"measured on {measured.units} hosts: {_text(measured.throughput, of_measured)} samples/s")
    error = 100 * (log_throughput.factor / measured.throughput - 1)
    print(f"node ring, from 1 and 2: {_text(log_throughput.factor, predicted)}: error {error:+.1f} %")
    for point in whole.points:
        print(f"{counted(point.units, 'host')}: {point.throughput:.4g} samples/s")
    return predicted.low <= of_measured.high and of_measured.low <= predicted.high


def main() -> int:
    """Measure and compare; return 1 where the intervals don't meet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", default="50mbit", help="of each host's link, as tc gives rates")
    options = parser.parse_args()
    os.environ["PATH"] += f"{os.pathsep}/usr/sbin"
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if os.geteuid() != 0 or missing:
        print(f"no hosts can be made here: {', '.join(missing) or 'only root can'}")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return int(not compare(measure(options.rate, Path(folder))))


def _text(rate: float, held: Interval) -> str:
    return f"{rate:.4g} [{held.low:.4g}, {held.high:.4g}]"


if __name__ == "__main__":
    sys.exit(main())
