"""A sweep as its users have it: killed, gone on with, and the same figures as without any of that."""

import json

import pytest

from debate_rl.runs.folder import is_locked

from ..integration.conftest import python, start, steps_of, wait_until

pytestmark = pytest.mark.slow
SMALL = ("train.steps=4", "held_out.every=2", "held_out.limit=8", "train.batch_size=2")
SMALL += ("train.group_size=2", "warm_start.solve_steps=6", "warm_start.debate_steps=2")


ARMS = ("learner.lr=1e-4,3e-2", "seeds=2")


COMMAND = ("-m", "debate_rl", "sweep", "quickstart", *SMALL, *ARMS)


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    home = tmp_path_factory.mktemp("straight")
    done = python(*COMMAND, "--json", "figures.json", "--table", "tables.md", cwd=home)
    assert done.returncode == 0, done.stderr
    return home, done


def figures(home):
    return json.loads((home / "figures.json").read_text())["figures"]


def test_arms_are_compared_from_one_start(straight):
    home, done = straight
    assert done.stderr.count(": done after ") == 4
    first, other = (home / f"runs/sweeps/quickstart/{arm}/seed_1" for arm in ("lr=1e-4", "lr=3e-2"))
    weights = [next((run / "warm_start").rglob("model.safetensors")).read_bytes() for run in (first, other)]
    assert weights[0] == weights[1]
    assert [row["arm"] for row in figures(home)][:2] == ["lr=1e-4", "lr=3e-2"]
    assert [row["less"] is None for row in figures(home)][:2] == [True, False]
    assert "95% intervals over 2 seeds" in done.stdout
    assert (home / "tables.md").read_text().count("| lr=3e-2") == 3  # two figures, and the cost


def test_the_same_command_does_nothing_again(straight):
    home, _ = straight
    again = python(*COMMAND, "--json", "figures.json", cwd=home)
    assert (again.returncode, again.stderr) == (0, "")


def test_a_killed_sweep_leaves_no_run_alone_and_goes_on_to_the_same_figures(straight, tmp_path):
    with start(*COMMAND, "at_once=2", cwd=tmp_path) as child:
        runs = [tmp_path / f"runs/sweeps/quickstart/lr={lr}/seed_0" for lr in ("1e-4", "3e-2")]
        wait_until(lambda: steps_of(runs[0]), child)
        child.kill()
    wait_until(lambda: not any(map(is_locked, runs)))
    done = python(*COMMAND, "at_once=3", "--json", "figures.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert figures(tmp_path) == figures(straight[0])


def test_a_signal_has_the_runs_save_what_they_have_finished(tmp_path):
    with start(*COMMAND, cwd=tmp_path) as child:
        run = tmp_path / "runs/sweeps/quickstart/lr=1e-4/seed_0"
        wait_until(lambda: steps_of(run), child)
        child.terminate()
        said = child.communicate()[1].splitlines()
    assert child.returncode == 143
    assert said[-1].startswith("debate: stopped; ")
    assert not is_locked(run)
    assert any((run / "checkpoints").glob("step_*"))


CHAIN = """
recipe = "rlvr/tiny"
seeds = 1
[all.held_out]
limit = 8
[all.warm_start]
solve_steps = 6
debate_steps = 2
[arms.direct.train]
steps = 3
batch_size = 2
group_size = 4
[arms.sft]
sft = { data = ["replies.jsonl"], epochs = 6, batch_size = 2 }
train = { save_every = 2 }
[arms.both]
after = "sft"
train = { steps = 2, batch_size = 2, group_size = 4 }
"""


def write_chain(home):
    (home / "chain.toml").write_text(CHAIN)
    rows = [
        {"question": f"Target {n}. Numbers 1 2 3.", "reply": f" The answer is {n}."} for n in range(3, 15)
    ]
    (home / "replies.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ("-m", "debate_rl", "sweep", "chain.toml", "--json", "figures.json")


def weights(home, arm):
    return [path.read_bytes() for path in sorted((home / f"runs/sweeps/chain/{arm}").rglob("*.safetensors"))]


def test_a_chain_that_is_killed_while_it_learns_replies_goes_on_bit_for_bit(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for home in (whole, killed):
        home.mkdir()
    assert python(*write_chain(whole), cwd=whole).returncode == 0
    run = killed / "runs/sweeps/chain/sft/seed_0"
    with start(*(command := write_chain(killed)), cwd=killed) as child:
        wait_until(lambda: len(steps_of(run)) > 9, child)
        child.kill()
    wait_until(lambda: not is_locked(run))
    assert not (killed / "runs/sweeps/chain/both").exists()
    assert python(*command, cwd=killed).returncode == 0
    assert figures(killed) == figures(whole)
    for arm in ("direct", "sft", "both"):
        assert weights(killed, arm) == weights(whole, arm)
    begun = "runs/sweeps/chain/both/seed_0/warm_start"
    last = "runs/sweeps/chain/sft/seed_0/checkpoints/step_000036"
    one, other = (next((whole / path).rglob("model.safetensors")).read_bytes() for path in (begun, last))
    assert one == other
