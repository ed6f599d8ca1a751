"""Arms of a sweep, their paired figures and which are dropped, with numbers by hand."""

import json
import re
from math import sqrt

import pytest
import tomli_w

from debate_rl.config.recipes import ConfigError, shipped_sweeps
from debate_rl.metrics.held_out import HeldOut
from debate_rl.runs.folder import plain_config
from debate_rl.sweeps.arms import Arm, Sweep, is_supervised, open_sweep, split_values
from debate_rl.sweeps.results import costs_of, differences, figures_of, passes_of
from debate_rl.sweeps.running import Runner, State, open_state, runs_of

SUMS = dict.fromkeys("abcd", "same")


def held_out(step, **right):
    """An evaluation whose problems a to d are right or wrong."""
    figures = {"direct/accuracy": {id: (float(value), 1) for id, value in right.items()}}
    return HeldOut(step, {id: SUMS[id] for id in right}, figures)


def test_values_stand_between_commas_outside_of_brackets_and_quotes():
    assert split_values("1,[2,3],{a = [1,2]}") == ["1", "[2,3]", "{a = [1,2]}"]
    assert split_values('\'a,b\',"c\\",d"') == ["'a,b'", '"c\\",d"']


def test_arms_are_the_named_ones_by_each_combination(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(
        'recipe = "quickstart"\nseeds = 2\n[all.train]\nsteps = 8\n[arms.one]\n[arms.two.rewards]\n'
        "truth_weight = 1.0\n[grid.learner]\nlr = [1e-4, 2e-4]\n"
    )
    sweep, arms = open_sweep(str(path), ["debate.num_rounds=1,2", "held_out.every=4", "seeds=4"])
    assert (sweep.seeds, sweep.out, len(arms)) == (4, "runs/sweeps/own", 8)
    assert arms[0] == Arm(
        "one lr=0.0001 num_rounds=1",
        ("train.steps=8", "held_out.every=4", "learner.lr=0.0001", "debate.num_rounds=1"),
    )
    assert arms[-1].name == "two lr=0.0002 num_rounds=2"
    assert arms[-1].overrides[2] == "rewards.truth_weight=1.0"
    assert arms[0].folder == "one_lr=0.0001_num_rounds=1"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["learner.lr=1e-4,x"], "arm 'lr=x': .*learner.lr: "),
        (["learner.lr=1e-4,1e-4"], "two arms have the name 'lr=1e-4'"),
        (["held_out.limit=0"], "arms are compared on held-out problems"),
        (["seeds=0"], "seeds: must be a number from 1 to 1000"),
        (["seeds=[7,7]"], "seeds: must be a number from 1 to 1000, or a list of 1 to 1000 different seeds"),
        (["learner.rl=1"], "learner: unknown key 'rl'"),
        (["learner"], "must have the form key=value"),
    ],
)
def test_what_is_no_sweep_is_one_line(given, said):
    with pytest.raises(ConfigError, match=said) as error:
        open_sweep("quickstart", given)
    assert "\n" not in str(error.value)


def test_a_file_of_a_sweep_is_checked_too(tmp_path):
    path = tmp_path / "own.toml"
    for text, said in (
        ('recipe = "nowhere"\n', "nowhere: no such file"),
        ('recipe = "quickstart"\n[grid.learner]\nlr = 1e-4\n', r"own.toml: grid.learner.lr:"),
        ('recipe = "quickstart"\n[arms.a.learner]\nrl = 1\n', "arm 'a': .*unknown key"),
        ('recipe = "quickstart"\narms = 3\n', "arms: must be a table of settings"),
    ):
        path.write_text(text)
        with pytest.raises(ConfigError, match=said):
            open_sweep(str(path), [])
    with pytest.raises(ConfigError, match=r"; did you mean 'quickstart_rewards'\? the shipped sweeps"):
        open_sweep("quickstart_reward", [])


@pytest.mark.parametrize("name", shipped_sweeps())
def test_every_shipped_sweep_has_arms_that_are_valid(name):
    sweep, arms = open_sweep(name, [])
    assert len(arms) > 1
    assert sweep.out == f"runs/sweeps/{name}"


def test_arms_of_a_seed_share_a_start_where_nothing_of_it_differs(tmp_path):
    sweep, arms = open_sweep("quickstart", [f"out={tmp_path}", "seeds=2", "learner.lr=1e-4,2e-4"])
    first, second, third, fourth = runs_of(sweep, arms)
    assert (first.start, second.start) == (None, first.folder)
    assert (third.start, fourth.start) == (None, third.folder)
    assert [run.seed for run in (first, second, third, fourth)] == [0, 0, 1, 1]
    sweep, arms = open_sweep("quickstart", [f"out={tmp_path}", "seeds=1", "model.tiny.layers=1,2"])
    assert [run.start for run in runs_of(sweep, arms)] == [None, None]
    sweep, arms = open_sweep("quickstart", [f"out={tmp_path}", "seeds=1", "train.jitter=0,1"])
    plain, jittered = runs_of(sweep, arms)
    assert (plain.start, jittered.start) == (None, plain.folder)
    sweep, arms = open_sweep("quickstart", [f"out={tmp_path}", "seeds=1", "train.jitter=2,1,0,3"])
    two, one, plain, three = runs_of(sweep, arms)  # a start that was perturbed is not perturbed again
    assert [run.start for run in (two, one, plain, three)] == [None, None, None, plain.folder]


def test_runs_of_a_seed_may_have_settings_of_their_own(tmp_path):
    sweep, arms = open_sweep("quickstart", [f"out={tmp_path}", "seeds=[7,9]", "learner.lr=1e-4,2e-4"])
    runs = runs_of(sweep, arms, lambda seed: (f"held_out.seed={seed}",))
    assert [run.config.held_out.seed for run in runs] == [7, 7, 9, 9]
    assert runs[-1].own == ("seed=9", f'run.dir="{runs[-1].folder}"', "held_out.seed=9")


MANY = ",".join(map(str, range(500)))
CHAIN = """
recipe = "rlvr/tiny"
[arms.direct]
[arms.sft]
sft = { data = ["replies.jsonl"] }
[arms.both]
after = "sft@best"
[arms.other]
recipe = "quickstart"
after = "both"
"""


def chain(tmp_path, text=CHAIN, *given):
    path = tmp_path / "chain.toml"
    path.write_text(text)
    return open_sweep(str(path), [f"out={tmp_path}/out", "seeds=2", *given])


def test_an_arm_begins_after_the_run_of_another_arm_of_its_seed(tmp_path):
    sweep, arms = chain(tmp_path)
    direct, sft, both, other = runs_of(sweep, arms)[4:]
    assert (direct.after, sft.after, both.after, other.after) == (None, None, sft, both)
    assert [run.seed for run in (direct, sft, both, other)] == [1] * 4
    assert (sft.start, both.start, other.start) == (direct.folder, None, None)
    assert both.start_words() == (f'warm_start.from_run="{tmp_path}/out/sft/seed_1@best"',)
    assert other.start_words() == (f'warm_start.from_run="{tmp_path}/out/both/seed_1@newest"',)
    assert sft.start_words() == (f'warm_start.from_run="{direct.folder}"',)
    assert not both.can_begin({"sft/seed_0": 1.0})
    assert both.can_begin({"sft/seed_1": 1.0})
    assert both.why_not() == "needs the weights of sft, seed 1, which did not finish"
    assert [config.debate.num_agents for config in (both.config, other.config)] == [1, 3]
    assert [is_supervised(run.config) for run in (direct, sft, both, other)] == [False, True, False, False]


@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        (CHAIN.replace('"sft@best"', '"stf"'), (), "arm 'both': after = 'stf': is not an earlier arm"),
        (CHAIN.replace('"sft@best"', '"both"'), (), "after = 'both': is not an earlier arm"),
        (CHAIN.replace('"sft@best"', "3"), (), "arms.both.after: must be a name"),
        *(
            (CHAIN.replace("sft@best", after), (), "arms.both.after: must be the name of an arm")
            for after in ("sft@bets", "@best", "", "sft@../../x")
        ),
        (
            CHAIN,
            [f"learner.{key}={MANY}" for key in ("lr", "beta")],
            "1,000,000 arms are too many; use at most 1,000",
        ),
        (CHAIN.replace('"quickstart"', '"quickstrat"'), (), "arm 'other': quickstrat: no such file"),
    ],
)
def test_a_chain_that_cannot_be_is_one_line(tmp_path, text, given, said):
    with pytest.raises(ConfigError, match=re.escape(said)) as error:
        chain(tmp_path, text, *given)
    assert "\n" not in str(error.value)


def test_what_a_run_took_counts_what_it_began_with(tmp_path):
    sweep, arms = chain(tmp_path)
    direct, sft, both, _ = runs_of(sweep, arms)[:4]
    spent = {"tokens/generated": 60, "tokens/completion": 6, "tokens/prompt": 20, "read_tokens": 300}
    write_lines(direct, spent)
    write_lines(sft, {"read_tokens": 100}, {"read_tokens": 50})
    write_lines(both, {"tokens/generated": 0, "read_tokens": None})
    # 60 said and 200 read by the sampler; of rows 3 passes, the reference and none before the first update
    assert passes_of(direct) == 260 + 4 * 300
    assert passes_of(sft) == passes_of(both) == 4 * 150
    assert [row.passes for row in costs_of([direct], arms[:1], State(recipe="x"))] == [1460]


def write_lines(run, *lines):
    run.folder.mkdir(parents=True)
    text = "".join(json.dumps({"step": step, **line}) + "\n" for step, line in enumerate(lines))
    (run.folder / "metrics.jsonl").write_text(text)


def test_arms_of_other_lengths_are_compared_at_their_ends(tmp_path):
    sweep, arms = chain(tmp_path, CHAIN, "held_out.every=1000")
    direct, sft, *_ = runs_of(sweep, arms)
    found = {direct: [held_out(0, a=0, b=0), held_out(60, a=1, b=0)], sft: [held_out(7, a=1, b=1)]}
    one, two = figures_of(found, arms[:2], ())
    assert (one.step, two.step, two.less.value) == (60, 7, 0.5)


def test_a_folder_of_other_arms_is_refused_and_more_arms_are_not(tmp_path):
    def state(*given):
        sweep, arms = open_sweep("quickstart", [f"out={tmp_path}", *given])
        with open_state(sweep, arms) as found:
            (tmp_path / "sweep.json").write_text(found.model_dump_json())
            return found

    state("learner.lr=1e-4,2e-4")
    assert [*state("learner.lr=2e-4,3e-4").arms] == ["lr=1e-4", "lr=2e-4", "lr=3e-4"]
    with pytest.raises(ConfigError, match=r"arm lr=1e-4 has 'nothing' instead of 'train.steps=4'"):
        state("learner.lr=1e-4,2e-4", "train.steps=4")
    with pytest.raises(ConfigError, match=r"a sweep of quickstart"):
        state_of(tmp_path, "quickstart_words")
    (tmp_path / "sweep.json").write_text('{"recipe": 3}')
    with pytest.raises(ConfigError, match=r"sweep.json: damaged: .*recipe"):
        state("learner.lr=1e-4,2e-4")


def state_of(home, recipe):
    with open_state(*open_sweep(recipe, [f"out={home}"])) as found:
        return found


def test_a_run_that_was_done_with_another_recipe_is_not_compared(tmp_path):
    sweep, arms = open_sweep("quickstart", [f"out={tmp_path}", "seeds=1"])
    (run,) = runs_of(sweep, arms)
    run.folder.mkdir(parents=True)
    plain = plain_config(run.config)

    def write(**learner):
        tables = plain | {"learner": plain["learner"] | learner, "logging": {"progress": "none"}}
        (run.folder / "config.toml").write_text(tomli_w.dumps(tables))
        Runner(sweep, State(recipe="quickstart", seconds={run.key: 1.0}), print).run([run])

    write()
    with pytest.raises(ConfigError, match=r"has other settings: learner.lr was 0.5 and is now 0.0006; "):
        write(lr=0.5)


def test_differences_are_by_seed_and_problem():
    ones = {0: held_out(4, a=0, b=1, c=0, d=1), 1: held_out(4, a=0, b=0, c=0, d=0)}
    others = {0: held_out(4, a=1, b=1, c=0, d=1), 1: held_out(4, a=1, b=1, c=1, d=0), 2: held_out(4, a=1)}
    found = differences(ones, others, "direct/accuracy")
    assert (found.value, found.clusters) == (0.5, 2)  # a quarter and three quarters
    reach = 12.7062047 * 0.5 / sqrt(2) / sqrt(2)  # t at one degree of freedom; standard deviation .354
    assert found.high - found.value == pytest.approx(reach)
    shared = {seed: held_out(4, a=1, b=1, c=0, d=0) for seed in range(5)}
    before = {seed: held_out(4, a=0, b=0, c=0, d=0) for seed in range(5)}
    alike = differences(before, shared, "direct/accuracy")  # five seeds agree, and half of the problems gain
    assert alike.high - alike.value == pytest.approx(3.1824463 * sqrt(0.25 / 3))  # t at three degrees
    one = differences({0: ones[0]}, others, "direct/accuracy")
    assert (one.value, one.clusters) == (0.25, 4)  # by problem


def sweep_of(by_arm, tmp_path):
    arms = [Arm(name, ()) for name in by_arm]
    sweep = Sweep(recipe="quickstart", out=str(tmp_path), seeds=len(next(iter(by_arm.values()))))
    runs = runs_of(sweep, arms)
    return arms, {run: by_arm[run.arm.name][run.seed] for run in runs}


def test_each_arm_is_compared_with_the_first_after_the_same_steps(tmp_path):
    start, half, end = held_out(0, a=0, b=0), held_out(4, a=1, b=0), held_out(8, a=1, b=1)
    arms, found = sweep_of({"one": [[start, half, end]], "two": [[start, half]]}, tmp_path)
    one, two = figures_of(found, arms, ())
    assert (one.step, one.value.value, one.gained.value, one.less) == (8, 1.0, 1.0, None)
    assert (two.step, two.value.value, two.gained.value, two.less.value) == (4, 0.5, 0.5, 0.0)


def test_a_figure_of_seeds_that_are_not_equally_far_is_of_the_last_step_they_share(tmp_path):
    start, end = held_out(0, a=0, b=0), held_out(8, a=1, b=1)
    arms, found = sweep_of({"one": [[start, end], [start]]}, tmp_path)
    [one] = figures_of(found, arms, ())
    assert (one.step, one.seeds, one.value.value, one.gained) == (0, 2, 0.0, None)
