"""The simulation of a cluster: sums, limits with closed formulas, and its command."""

import dataclasses
import itertools
import json
import math
import subprocess
import sys

import pytest

from tessella_bench.clusters import (
    Constants,
    PartitionedFit,
    load_constants,
    simulate,
    table,
)

MEASURED = Constants(
    leaf_seconds=2e-6,
    coordinator_seconds=0.02,
    coordinator_leaf_seconds=1e-9,
    packet_bytes=3000.0,
    bandwidth=2e8,
)
FREE = Constants(
    leaf_seconds=1e-5,
    coordinator_seconds=0.0,
    coordinator_leaf_seconds=0.0,
    packet_bytes=0.0,
    bandwidth=1e300,
    latency=0.0,
    task_seconds=0.0,
)
FIT = PartitionedFit(rows=1_000_000, leaf_rows=2000, trees=2, n_params=22, spread=0.4)
EVEN = dataclasses.replace(FIT, spread=0.0)


@pytest.mark.parametrize("cores", [1, 7, 64, 5000])
@pytest.mark.parametrize("leaves_per_task", [1, 3])
def test_seconds_of_the_tasks_are_those_of_the_cores(cores, leaves_per_task):
    fit = dataclasses.replace(FIT, leaves_per_task=leaves_per_task)
    found = simulate(fit, MEASURED, cores)
    assert len(found.busy) == cores
    assert math.fsum(found.busy) == pytest.approx(found.task_seconds, rel=1e-12)
    assert found.cores * found.tasks == pytest.approx(found.task_seconds, rel=1e-12)
    whole = simulate(FIT, MEASURED, 1)
    assert found.task_seconds == pytest.approx(whole.task_seconds, rel=1e-12)
    assert found.transfer == pytest.approx(whole.transfer, rel=1e-12)
    assert found.scheduler == pytest.approx(math.ceil(1000 / leaves_per_task) * 1e-3)


def test_leaves_hold_the_rows_of_every_tree():
    # With the exponent 1 the seconds are those of the rows, whatever the sizes of the leaves.
    linear = dataclasses.replace(FREE, leaf_exponent=1.0)
    even = simulate(EVEN, linear, 1).task_seconds
    assert even == pytest.approx(1e-5 * 2 * 1_000_000, rel=1e-12)
    assert simulate(FIT, linear, 1).task_seconds == pytest.approx(even, rel=1e-3)


@pytest.mark.parametrize("constants", [MEASURED, FREE])
@pytest.mark.parametrize("spread", [0.0, 0.4, 0.9])
def test_more_cores_are_never_slower(constants, spread):
    fit = dataclasses.replace(FIT, rows=200_000, spread=spread)
    seconds = [simulate(fit, constants, cores).seconds for cores in range(1, 220)]
    for fewer, more in itertools.pairwise(seconds):
        assert more <= fewer * (1 + 1e-12)


@pytest.mark.parametrize("cores", [1, 10, 300, 1000, 4000])
def test_without_overheads_a_round_is_its_waves(cores):
    found = simulate(EVEN, FREE, cores)
    leaf = 1e-5 * 2000**1.4
    assert found.seconds == pytest.approx(math.ceil(1000 / cores) * leaf, rel=1e-12)
    assert found.efficiency == pytest.approx(1000 / (cores * math.ceil(1000 / cores)), rel=1e-9)
    assert found.saturated == "tasks"


def test_a_slow_scheduler_takes_its_time_for_every_task():
    constants = dataclasses.replace(FREE, task_seconds=1.0, latency=0.01)
    found = simulate(EVEN, constants, 50)
    assert found.seconds == pytest.approx(1000 * 1.0 + 0.02 + 1e-5 * 2000**1.4, rel=1e-12)
    assert found.saturated == "scheduler"
    batches = dataclasses.replace(EVEN, leaves_per_task=10)
    assert simulate(batches, constants, 50).scheduler == pytest.approx(100.0)


def test_a_slow_link_carries_all_evidence():
    constants = dataclasses.replace(FREE, bandwidth=1e5, packet_bytes=100.0)
    found = simulate(EVEN, constants, 100)
    carried = 1000 * (8 * 22**2 + 100) / 1e5
    assert found.transfer == pytest.approx(carried, rel=1e-12)
    assert found.seconds == pytest.approx(carried + 1e-5 * 2000**1.4, rel=1e-12)
    assert found.saturated == "transfer"


def test_the_coordinator_comes_after_everything_else():
    slow = {"coordinator_seconds": 3.0, "coordinator_leaf_seconds": 1e-4}
    found = simulate(EVEN, dataclasses.replace(FREE, **slow), 100)
    assert found.coordinator == pytest.approx(3.0 + 1e-4 * 1000 * 22**2)
    without = simulate(EVEN, FREE, 100).seconds
    assert found.seconds == pytest.approx(without + found.coordinator, rel=1e-12)
    assert found.saturated == "coordinator"


@pytest.mark.parametrize("cores", [1, 13, 200])
def test_a_round_is_at_least_as_long_as_each_part(cores):
    found = simulate(FIT, MEASURED, cores)
    least = max(found.tasks, found.transfer, found.scheduler) + found.coordinator
    assert found.seconds >= least * (1 - 1e-12)
    assert 0 < found.efficiency <= 1


# --------------------------------------------------------------------------------- the command


def write(folder, content):
    path = folder / "constants.json"
    path.write_text(json.dumps(content))
    return path


def test_constants_come_from_a_file(tmp_path):
    content = dataclasses.asdict(MEASURED)
    assert load_constants(write(tmp_path, content)) == MEASURED
    assert load_constants(write(tmp_path, {"constants": content, "date": "today"})) == MEASURED


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"speed": 1.0}, "does not know speed"),
        ({"leaf_seconds": None}, "leaf_seconds must be a number"),
        ({"latency": -1.0}, "latency must be finite and not negative"),
        ({"bandwidth": 0.0}, "bandwidth must be positive"),
    ],
)
def test_wrong_constants_are_named(tmp_path, change, message):
    path = write(tmp_path, {**dataclasses.asdict(MEASURED), **change})
    with pytest.raises(ValueError, match=message):
        load_constants(path)


def test_missing_constants_are_named(tmp_path):
    with pytest.raises(ValueError, match="lacks coordinator_leaf_seconds, leaf_seconds"):
        load_constants(write(tmp_path, {"coordinator_seconds": 1.0}))
    with pytest.raises(ValueError, match="cannot be read as JSON"):
        load_constants(tmp_path / "absent.json")


@pytest.mark.parametrize(
    "change", [{"rows": 0}, {"trees": 0}, {"spread": 1.0}, {"leaves_per_task": 0}]
)
def test_wrong_fits_are_refused(change):
    with pytest.raises(ValueError, match="must be"):
        dataclasses.replace(FIT, **change)


def test_no_cores_are_refused():
    with pytest.raises(ValueError, match="cores"):
        simulate(FIT, MEASURED, 0)


def test_table_has_a_line_for_every_fit_and_cluster():
    lines = table([FIT, EVEN], [10, 100], MEASURED).splitlines()
    assert len(lines) == 2 + 4
    assert {line.count("|") for line in lines} == {lines[0].count("|")}
    assert f"{simulate(FIT, MEASURED, 10).seconds:.3g}" in lines[2]


def test_command_prints_the_table(tmp_path):
    path = write(tmp_path, dataclasses.asdict(MEASURED))
    command = [sys.executable, "-m", "tessella_bench.clusters", str(path), "--rows", "1e6"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    fit = PartitionedFit(1_000_000)
    assert ended.stdout.strip() == table([fit], [100, 1000], MEASURED)
