"""Programs of a user on two hosts: started on each node, on the first node alone, and once for each rank."""

import pytest

from tests.command_line import LIMIT_SECONDS
from tests.machines.clusters import slurm_runs
from tests.machines.clusters.ssh_runs import execute
from tests.programs.examples import AS_ROOT, check_recorded, example, path_with, rendered
from tests.requirements import need

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("name", ["torchrun", "mpirun", "per_rank"])
def test_two_hosts_train_together(name, ssh, ssh_cluster, tmp_path):
    if name == "mpirun":
        need("mpirun")
    folder = ssh.hidden / name / "1"
    variables = {"PATH": path_with(tmp_path), **AS_ROOT}
    run = example(name, tmp_path / "study", nodes=2)
    result = execute(rendered(run, ssh_cluster, folder, **variables), ssh_cluster, 120)
    check_recorded(folder, run, result, ssh_cluster.hosts[:2])
    assert not any(ssh.work.iterdir())


@pytest.mark.needs("torch")
def test_two_nodes_of_a_queue_train_together(slurm_cluster, tmp_path):
    run = example("torchrun", tmp_path / "study", nodes=2)
    folder = tmp_path / "configuration" / "runs" / "1"
    submission = rendered(run, slurm_cluster, folder, PATH=path_with(tmp_path))
    [result] = slurm_runs.execute([submission], slurm_cluster, 120)
    check_recorded(folder, run, result)
    assert len({node["hardware"]["host"] for node in result.nodes}) == 2
