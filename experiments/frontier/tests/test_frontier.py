"""Signals, rules and what votes are worth, with numbers by hand."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from debate_rl.config import Config
from debate_rl.config.recipes import ConfigError, load_config
from debate_rl.metrics.held_out import HeldOut, to_line
from debate_rl.metrics.intervals import Estimate
from debate_rl.rollouts.worker import group_names
from debate_rl.sampling.draw_problems import Sampler
from debate_rl.sampling.load_problems import load_run_problems
from debate_rl.sweeps.arms import Arm
from debate_rl.sweeps.running import Runner, SweepRun
from experiments.frontier.drawing import draw
from experiments.frontier.labels import worth, worths
from experiments.frontier.results import Cell, OfSeed, cells_of, difference, less, shortest
from experiments.frontier.rules import (
    Call,
    Rule,
    a_coin_pays_nothing,
    call_lines,
    certainty,
    controls_gain_nothing,
    judged_rules,
    majorities_beat_worse_votes,
    margins_call_signs,
    of_calls,
    shared_errors_harm,
    signs_are_called,
    the_winner_holds,
    votes_beat_majorities,
)
from experiments.frontier.running import (
    Plan,
    Prior,
    Ran,
    alone_debates,
    check_plan,
    joined,
    planned,
    run_plan,
)
from experiments.frontier.signals import PLAIN, signal_named
from experiments.frontier.start import Judged, Start, measured_start
from experiments.frontier.tables import (
    arm_table,
    cost_table,
    plain,
    rule_table,
    start_table,
    trace_table,
    worth_lines,
)

FIRST, WINNER, JUDGE = "debate/accuracy/round_0", "debate/winner/accuracy", "judge/accuracy"
SIZE = 20


def held_out(step, first, winner=None, judge=None):
    """An evaluation of 20 problems, each of which is right as often: problems add nothing to an interval."""
    figures = {
        name: {str(i): (share, 1) for i in range(SIZE)}
        for name, share in ((FIRST, first), (WINNER, winner), (JUDGE, judge))
        if share is not None
    }
    return HeldOut(step, {str(i): "same" for i in range(SIZE)}, figures)


def point(value):
    return Estimate(value, value, value, SIZE, SIZE)


def cell(
    signal="votes",
    *,
    prior="trap",
    p_v=0.9,
    p_c=0.3,
    p_m=0.1,
    ends=(0.5, 0.6, 0.55),
    winners=(),
    steps=7,
    labels=0,
):
    """A cell whose first answers begin at .2 and end at these shares, a seed each; winners begin at .5."""
    seeds, evaluations = {}, {}
    for seed, end in enumerate(ends):
        last = winners[seed] if winners else None
        before = (0.5, 0.9) if winners else ()
        traces = [held_out(0, 0.2, *before), held_out(steps, end, last, 0.8 if winners else None)]
        evaluations[seed] = traces
        seeds[seed] = OfSeed(
            gain=point(end - 0.2),
            winner_gain=None if last is None else point(last - 0.5),
            first=((0, 0.2), (steps, end)),
            winner=() if last is None else ((0, 0.5), (steps, last)),
            shown={0: Judged(pairs=9, p_v=p_v, p_c=p_c, p_m=p_m)},
            generated=1000.0,
            read=5000.0,
            labels=labels,
            judge_gain=None if last is None else point(-0.1),
        )
    control = signal_named(signal).control
    start = {0: Judged(pairs=30, p_v=p_v, p_c=p_c, p_m=p_m)}
    return Cell(prior, signal, control, steps, start, seeds, evaluations)


def test_a_signal_is_known_by_its_name_and_share():
    assert signal_named("votes").overrides == ("rewards.labels=0.0", "rewards.truth_weight=0.0")
    assert signal_named("ttrl").alone
    assert "rewards.pseudo=majority" in signal_named("ttrl").overrides
    assert signal_named("shared=0.4").control == "shared_errors"
    assert signal_named("routed=0.125").overrides == ("rewards.labels=0.125", "rewards.peer_weight=routed")
    assert signal_named("labels=12").overrides[0] == "env.limit=12"
    assert [name for name in PLAIN if signal_named(name).name != name] == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("vote", "vote: no such signal; did you mean 'votes'"),
        ("truth", "truth: no such signal"),
        ("truth=0", "share after a signal is above 0 and at most 1"),
        ("flipped=1.5", "flipped=1.5: the share"),
        ("flipped=x", r"\(got 'x'\)"),
        ("votes=0.5", "no such signal"),
        ("labels", "labels: no such signal"),
        ("labels=0", r"labels=0: the number of problems behind labels= is 1 or more, .* \(got '0'\)"),
        (
            "labels=012",
            r"written without a zero before it and in nine digits at most \(got '012'\)",
        ),  # one arm twice
        ("labels=" + 5000 * "9", r"in nine digits at most"),
        ("labels=0.5", r"\(got '0.5'\)"),
    ],
)
def test_a_signal_that_there_is_not_is_named(name, said):
    with pytest.raises(ValueError, match=said):
        signal_named(name)


@pytest.mark.parametrize(
    ("recipe", "overrides", "said"),
    [
        ("curriculum/tiny", (), "has stages"),
        ("quickstart", ("held_out.limit=0",), "held_out.limit or every is 0"),
        ("rlvr/tiny", ("held_out.limit=5",), "nobody votes here"),
        ("quickstart", ("train.control=random_reward",), 'train.control = "random_reward": --signals say'),
        (
            "quickstart",
            ("rewards.pseudo=voted", "rewards.labels=0"),
            'rewards.pseudo = "voted": --signals say',
        ),
        ("quickstart", ("rewards.peer_weight=routed",), 'rewards.peer_weight = "routed": --signals say'),
        ("zero_sum_tiny", (), "arm 'ttrl': .*final_ballot: False"),
    ],
)
def test_arms_that_could_not_be_compared_are_refused(recipe, overrides, said):
    plan = Plan(tuple(planned(Prior("", recipe, overrides), ["ttrl"])), (1,), "out")
    with pytest.raises(ValueError, match=said):
        check_plan(plan)


def test_an_arm_of_few_problems_has_the_steps_of_the_others():
    """Its problems come again in a step, each time in a group of its own; epochs would end it early."""
    few = planned(Prior("", "quickstart"), ["labels=8"])
    check_plan(Plan(tuple(few), (1,), "out"))
    config = load_config(Config, "quickstart", few[1].signal.overrides)
    data = load_run_problems(config)
    assert [one.id for one in data.train] == [
        one.id for one in load_run_problems(load_config(Config, "quickstart")).train[:8]
    ]
    sampler = Sampler(config, data)
    drawn = [index for step in range(2) for index in sampler.draw(step).problems]
    assert [sorted(drawn[place : place + 8]) for place in (0, 8, 16)] == [[*range(8)]] * 3
    first = group_names([data.train[index] for index in drawn[:12]])
    assert len(set(first)) == 12
    by_epochs = planned(Prior("", "quickstart", ("train.epochs=2",)), ["labels=8"])
    with pytest.raises(ConfigError, match=r"train.epochs = 2: arm 'labels=8' has fewer problems"):
        check_plan(Plan(tuple(by_epochs), (1,), "out"))


def test_arms_without_a_start_in_common_are_refused():
    others = planned(Prior("", "quickstart"), ["ttrl"])[1:]
    with pytest.raises(ValueError, match="has no arm 'votes', whose start the others take"):
        check_plan(Plan(tuple(others), (1,), "out"))


def test_a_start_that_was_edited_is_named_with_its_field_and_value(tmp_path):
    path = tmp_path / "start-1.json"
    good = Start(problems=60, judged={}, solution=10.0, debate=190.0)
    config = load_config(Config, "quickstart")
    path.write_text(good.model_dump_json())
    assert measured_start(config, [], path, problems=60) == good
    over = {"pairs": 1, "p_v": 5, "p_c": 0, "p_m": 0}
    for changed, said in (
        (good.model_dump() | {"solution": 0}, "damaged: solution: .* greater than 0 (got 0)"),
        (
            good.model_dump() | {"judged": {"votes": {0: over}}},
            "p_v: .* (got 5)",
        ),
        ([], "damaged: must be a table of settings (got [])"),
    ):
        path.write_text(json.dumps(changed))
        with pytest.raises(ConfigError, match=re.escape(said).replace(r"\.\*", ".*")) as error:
            measured_start(config, [], path, problems=60)
        assert str(error.value).startswith(f"{path}: ")
        assert "remove the file, and the start is measured anew" in str(error.value)


def test_a_run_without_its_first_or_last_evaluation_is_not_compared(tmp_path):
    arm = planned(Prior("", "quickstart", ("train.steps=2",)), [])[0]
    config = load_config(Config, "quickstart", ("train.steps=2",))
    run = SweepRun(Arm("votes", ()), 1, tmp_path, config)
    start = Start(problems=60, judged={}, solution=10.0, debate=190.0)
    for steps, missing in (((), 0), ((2,), 0), ((0,), 2), ((0, 1), 2)):
        (tmp_path / "held_out.jsonl").write_bytes(b"".join(to_line(held_out(n, 0.2)) + b"\n" for n in steps))
        with pytest.raises(ValueError, match=f"held_out.jsonl: has no evaluation after step {missing}"):
            cells_of([Ran(arm, {1: (run,)}, {1: start})])


def test_a_folder_is_held_until_all_of_it_is_done(tmp_path, monkeypatch):
    """While the start is measured nobody else may begin arms in the folder."""
    plan = Plan(tuple(planned(Prior("", "quickstart"), [])), (1,), str(tmp_path))
    monkeypatch.setattr(Runner, "run", lambda runner, runs: set_done(runner, runs))
    monkeypatch.setattr("experiments.frontier.running.measured_start", lambda *_: run_plan(plan, print))
    with pytest.raises(ValueError, match="is in use by process"):
        run_plan(plan, print)


def set_done(runner, runs):
    runner.state = runner.state.model_copy(update={"seconds": {run.key: 1.0 for run in runs}})


def test_a_run_that_is_missing_says_why(tmp_path, monkeypatch):
    plan = Plan(tuple(planned(Prior("", "quickstart"), ["voted"])), (1,), str(tmp_path))
    start = Start(problems=60, judged={}, solution=10.0, debate=190.0)

    def run(runner, runs):
        set_done(runner, runs[:1])
        runner.state = runner.state.model_copy(update={"failed": {"voted/seed_1": "no\x1b[2J room"}})

    monkeypatch.setattr(Runner, "run", run)
    monkeypatch.setattr("experiments.frontier.running.measured_start", lambda *_: start)
    votes, voted = run_plan(plan, print)
    assert (list(votes.runs), votes.missing) == ([1], {})
    assert (list(voted.runs), voted.missing) == ([], {1: "no�[2J room"})


def test_every_seed_may_have_its_own_held_out_problems_and_jitters_one_start(tmp_path, monkeypatch):
    wanted = tuple(planned(Prior("trap", "quickstart"), ["voted"]))
    plan = Plan(wanted, (7, 9), str(tmp_path), own_held_out=True)
    again = replace(plan, out=f"{tmp_path}/jitter_1", jitter=1, begins=plan.out)
    start = Start(problems=60, judged={}, solution=10.0, debate=190.0)
    monkeypatch.setattr(Runner, "run", set_done)
    monkeypatch.setattr("experiments.frontier.running.measured_start", lambda *_: start)
    votes, voted = joined([run_plan(plan, print), run_plan(again, print)])
    assert [run.config.held_out.seed for runs in votes.runs.values() for run in runs] == [7, 7, 9, 9]
    assert [run.config.train.jitter for run in voted.runs[9]] == [0, 1]
    first = tmp_path / "trap_votes" / "seed_7"
    assert [run.start for run in (*votes.runs[7], *voted.runs[7])] == [None, first, first, first]
    assert "train.jitter=1" in voted.runs[7][1].own


def test_the_repeats_of_a_seed_are_one_value_of_it(tmp_path):
    """Gains of .2 and .4 from .1: one seed that gained .3, with a standard deviation of .02 ** .5."""
    arm = planned(Prior("", "quickstart", ("train.steps=2",)), [])[0]
    config = load_config(Config, "quickstart", ("train.steps=2",))
    start = Start(problems=60, judged={}, solution=10.0, debate=190.0)
    runs = []
    for name, end in (("a", 0.3), ("b", 0.5)):
        lines = [to_line(held_out(step, share)) + b"\n" for step, share in ((0, 0.1), (2, end))]
        (tmp_path / name / "transcripts").mkdir(parents=True)
        (tmp_path / name / "held_out.jsonl").write_bytes(b"".join(lines))
        (tmp_path / name / "metrics.jsonl").write_text('{"step": 0, "tokens/generated": 10.0}\n')
        runs.append(SweepRun(Arm("votes", ()), 1, tmp_path / name, config))
    (found,) = cells_of([Ran(arm, {1: tuple(runs)}, {1: start})])
    assert found.seeds[1].gains == pytest.approx((0.2, 0.4))
    assert found.gain.value == pytest.approx(0.3)
    assert found.jitter_sd == pytest.approx(0.02**0.5)
    assert (found.seeds[1].generated, found.gain.clusters) == (10.0, SIZE)


def test_solutions_that_spend_the_tokens_of_debates():
    """A debate generates 190 tokens and a solution 10; 4 debates of 3 agents are 25 rounds of 3 solutions."""
    one = planned(Prior("", "quickstart"), ["ttrl"])[1]
    start = Start(problems=60, judged={}, solution=10.0, debate=190.0)
    assert alone_debates(one, {(one.prior, 1): start}) == 25


@pytest.mark.parametrize(
    ("curve", "accuracy", "labels"),
    [
        ([(0, 0.2), (10, 0.4)], 0.3, 5.0),
        ([(0, 0.2), (10, 0.4)], 0.1, 0.0),
        ([(0, 0.2), (10, 0.4)], 0.9, 10.0),
        ([(0, 0.2), (10, 0.4), (20, 0.3), (30, 0.6)], 0.45, 25.0),
        ([(0, 0.2), (10, 0.4), (20, 0.3), (30, 0.6)], 0.35, 7.5),
    ],
)
def test_votes_are_worth_the_labels_where_the_lines_meet(curve, accuracy, labels):
    assert worth(curve, accuracy) == pytest.approx(labels)


def test_what_votes_are_worth_is_taken_seed_by_seed():
    """From .2 at 0 labels to .4 at 10 and .8 at 30: .3 is worth 5, .6 is worth 20, and .9 all 30."""
    cells = [
        cell(ends=(0.3, 0.6, 0.9)),
        cell("labels=10", ends=(0.4, 0.4, 0.4), labels=10),
        cell("truth=1.0", ends=(0.8, 0.8, 0.8), labels=30),
        cell("truth=0.5", ends=(0.25, 0.25, 0.25), labels=15),  # half of its tokens teach nothing: no point
    ]
    (found,) = worths(cells)
    assert found.by_seed == pytest.approx({0: 5.0, 1: 20.0, 2: 30.0})
    assert found.labels.value == pytest.approx(55 / 3)
    assert worth_lines([found])[0].startswith("trap votes without labels: worth 18 (0 to 30) of 30 labels")
    assert worths(cells[:1]) == worths(cells[:2]) == worths([cells[0], *cells[2:]]) == []


def test_labels_are_those_of_runs_as_long_as_the_votes():
    """70 steps of truth use 840 labels; votes of 7 steps above all truth of 7 steps are worth its 84."""
    cells = [
        cell(ends=(0.6, 0.5)),
        cell("labels=41", ends=(0.3, 0.3), labels=41),
        cell("truth=1.0", ends=(0.4, 0.4), labels=84),
        cell("truth=1.0", ends=(0.9, 0.9), labels=840, steps=70),
    ]
    (found,) = worths(cells)
    assert (found.by_seed, found.most) == ({0: 84.0, 1: 84.0}, 84.0)


def test_a_prior_whose_runs_are_longer_is_judged_as_well():
    """Words has 16 steps and the others 7; 70 steps of votes are no cell of rule A."""
    cells = [
        *(cell(steps=steps) for steps in (7, 70)),
        cell("ttrl", ends=(0.1, 0.15, 0.1)),
        cell(prior="words", steps=16),
        cell("ttrl", prior="words", steps=16, ends=(0.1, 0.15, 0.1)),
    ]
    rule = judged_rules(cells)[0]
    assert (rule.verdict, len(rule.tested)) == ("holds", 2)
    assert shortest(cells) == [cells[0], *cells[2:]]


def test_differences_are_of_one_seed_and_problem():
    votes, ttrl = cell(ends=(0.5, 0.6)), cell("ttrl", ends=(0.1, 0.4))
    values = difference(votes, ttrl)
    assert {seed: one.value for seed, one in values.items()} == pytest.approx({0: 0.4, 1: 0.2})
    assert less(votes, ttrl).value == pytest.approx(0.3)
    assert values[0].low < 0.4 < values[0].high
    assert less(cell(ends=()), ttrl) is None


def test_votes_beat_majorities_only_where_they_do_so_on_every_seed_and_clearly():
    ttrl = cell("ttrl", ends=(0.1, 0.15, 0.1))
    clear, mixed = cell(ends=(0.5, 0.6, 0.55)), cell(ends=(0.5, 0.1, 0.55))
    assert votes_beat_majorities([clear, ttrl]).verdict == "holds"
    assert votes_beat_majorities([mixed, ttrl]).verdict == "not shown"
    assert votes_beat_majorities([cell(ends=(0.05, 0.12, 0.06)), ttrl]).verdict == "fails"
    assert votes_beat_majorities([cell(p_c=0.6), ttrl]).verdict == "not tested"
    assert votes_beat_majorities([cell(p_v=0.6), ttrl]).verdict == "not tested"
    assert votes_beat_majorities([clear]).verdict == "not tested"
    assert majorities_beat_worse_votes([cell(p_v=0.6, p_c=0.8), ttrl]).verdict == "fails"
    assert (
        majorities_beat_worse_votes([cell(p_v=0.6, p_c=0.8), cell("ttrl", ends=(0.9, 0.9, 0.9))]).verdict
        == "holds"
    )


def test_a_gain_that_judging_does_not_explain_fails_the_second_rule():
    none, some, harm = (0.2, 0.25, 0.15), (0.5, 0.55, 0.5), (0.05, 0.0, 0.05)
    assert a_coin_pays_nothing([cell("flipped=0.5", p_v=0.5, ends=none)]).verdict == "not shown"
    assert a_coin_pays_nothing([cell("flipped=0.5", p_v=0.5, ends=near(0.2))]).verdict == "holds"
    assert a_coin_pays_nothing([cell("flipped=0.5", p_v=0.5, ends=some)]).verdict == "fails"
    little = (0.225, 0.23, 0.235)  # gains of .03, +- .012: above 0, and its lower end within .02 of it
    assert a_coin_pays_nothing([cell("flipped=0.5", p_v=0.5, ends=little)]).verdict == "fails"
    assert a_coin_pays_nothing([cell("shuffled", p_v=0.5, ends=some)]).verdict == "not tested"
    assert shared_errors_harm([cell("shared=0.65", p_v=0.4, ends=harm)]).verdict == "holds"
    assert shared_errors_harm([cell("shared=0.65", p_v=0.4, ends=none)]).verdict == "not shown"
    assert shared_errors_harm([cell("shared=0.65", p_v=0.4, ends=some)]).verdict == "fails"
    assert shared_errors_harm([cell("flipped=0.65", p_v=0.4, ends=none)]).verdict == "not tested"
    rule = controls_gain_nothing(
        [cell("own_answer", ends=some), cell(ends=near(0.4)), cell("random", ends=none)]
    )
    assert (rule.verdict, len(rule.tested), len(rule.unsure)) == ("fails", 2, 1)
    assert "; votes less it -0.117 (" in rule.against[0]


def test_a_winner_that_falls_is_said_to_cost_the_judge():
    holds, falls = (0.55, 0.6, 0.55), (0.2, 0.25, 0.2)
    assert the_winner_holds([cell(winners=holds)]).verdict == "holds"
    assert the_winner_holds([cell(winners=(0.5, 0.6, 0.55))]).verdict == "not shown"  # -.07 to +.17
    rule = the_winner_holds([cell(winners=holds), cell(winners=falls, steps=70)])
    assert (rule.verdict, len(rule.tested)) == ("fails", 2)
    assert rule.against[0].endswith("costs the judge")
    assert the_winner_holds([cell(winners=falls, p_v=0.6)]).verdict == "not tested"


def near(end, spread=0.001):
    """Ends of three seeds so near to each other that a gain of .003 has a sign."""
    return end - spread, end, end + spread


def of_lines(slope, called=1.0):
    """24 cells of votes and majorities that gain slope (p - 1/2); times ``called`` in every other one."""
    shares = [0.3 + 0.035 * place for place in range(12)]
    ends = [0.2 + slope * (share - 0.5) * (called if place % 2 else 1) for place, share in enumerate(shares)]
    return [
        cell(kind, prior=f"start {place}", p_v=p, p_c=p, ends=near(end))
        for kind in ("votes", "last_majority")
        for place, (p, end) in enumerate(zip(shares, ends, strict=True))
    ]


def test_signs_are_called_by_lines_that_were_fitted_on_the_other_half():
    """All of 12 calls are right, on six starts: that may be 54% of all starts."""
    assert signs_are_called(of_lines(0.8)[:23]).verdict == "not tested"
    rule = signs_are_called(of_lines(0.8))
    assert (rule.verdict, rule.figures["cells"], rule.figures["hit_rate"]) == ("not shown", 24.0, 1.0)
    assert rule.figures["low"] == pytest.approx(0.025 ** (1 / 6))
    assert rule.figures["votes_slope"] == pytest.approx(0.8)
    assert rule.figures["majorities_intercept"] == pytest.approx(0.0, abs=1e-9)
    assert (rule.figures["votes_known"], rule.figures["majorities_hit_rate"]) == (6.0, 1.0)
    against = signs_are_called(of_lines(0.8, called=-1.0))
    assert (against.verdict, against.figures["hit_rate"], len(against.against)) == ("fails", 0.0, 12)


def of_margins(majority_gains):
    """Votes at 10 p_v beside TTRL where the majority is right on .4: TTRL gains, or loses, what is told."""
    shares = [0.3 + 0.05 * place for place in range(10)]
    votes = [cell("votes", p_v=p, p_c=0.9, p_m=0.4, ends=near(p - 0.3)) for p in shares]
    others = ("ttrl", "ttrl_debate", "last_majority", "last_majority")
    return [*votes, *(cell(one, p_m=0.4, ends=near(0.2 + majority_gains, -0.001)) for one in others)]


def test_margins_call_the_signs_of_votes_majorities_and_their_difference():
    """Votes gain p_v - 1/2 and TTRL -.1, so votes gain more where p_v is over .4, which is p_m.

    At p_v = .5 votes gain 0 and at .4 as much as TTRL: these two signs nobody knows.
    """
    rule = margins_call_signs(of_margins(-0.1))
    assert (rule.verdict, len(rule.tested), rule.against) == ("not shown", 24, ())
    assert {name: rule.figures[f"{name}_known"] for name in ("votes", "majorities", "votes less TTRL")} == {
        "votes": 9,
        "majorities": 4,
        "votes less TTRL": 9,
    }
    assert [rule.figures[name] for name in ("calls", "signs_known", "starts", "hit_rate")] == [24, 22, 1, 1]
    # TTRL gains .2: four calls of it are wrong, and five p_v from .45 to .65, whose votes do not gain more
    other = margins_call_signs(of_margins(0.2))
    assert other.figures["hit_rate"] == pytest.approx(13 / 22)
    assert other.verdict == "not shown"  # one start says nothing of others
    assert margins_call_signs(of_margins(-0.1)[1:]).verdict == "not tested"


def test_calls_are_scored_where_the_sign_is_known_and_by_start():
    def call(prior, gain, sure=None):
        return Call("cell", prior, "votes", 0.1, Estimate(gain, gain - 0.02, gain + 0.02, 5, 5), sure)

    calls = [
        call("a", 0.1, 0.9),
        call("a", 0.1, 0.9),
        call("b", 0.1, 0.9),
        call("b", -0.1, 0.8),
        call("b", 0.01),
    ]
    rule = of_calls("E", "called", calls, {})
    assert [line.rpartition(": ")[2] for line in rule.tested] == [
        *(["right"] * 3),
        "wrong",
        "the sign is not known",
    ]
    assert [rule.figures[name] for name in ("calls", "signs_known", "starts", "hit_rate")] == [5, 4, 2, 0.75]
    assert rule.figures["brier"] == pytest.approx((3 * 0.1**2 + 0.8**2) / 4)
    assert call_lines([rule, Rule("A", "another", (), ())]) == [
        "E: 3 of 4 known signs called, 0.75 (0.00 to 1.00, clustered by 2 starts), of 5 calls; Brier score "
        "0.168 (0.25: a coin)"
    ]
    assert of_calls("E", "called", calls[4:], {}).verdict == "not shown"
    many = [call(f"start {n}", 0.1) for n in range(40)]  # 40 starts without a wrong call: 91% or more
    assert of_calls("E", "called", many, {}).verdict == "holds"
    seeds = cell(p_v=0.7, ends=near(0.5))
    starts = [{0: Judged(pairs=9, p_v=p_v, p_c=0.3, p_m=0.1)} for p_v in (0.6, 0.8)]
    found = margins_call_signs([replace(seeds, starts=starts)] * 24).figures
    assert found["brier"] == pytest.approx((1 - certainty([0.1, 0.3])) ** 2)


@pytest.mark.slow
def test_tables_and_figure_are_of_the_cells(tmp_path):
    cells = [
        cell(winners=(0.6, 0.55, 0.6)),
        cell("ttrl", ends=(0.1, 0.15, 0.1)),
        cell("flipped=0.2", p_v=0.75, winners=(0.5, 0.5, 0.55)),
        cell("labels=41", ends=(0.5, 0.6, 0.5), labels=41),
        cell("truth=1.0", ends=(0.6, 0.7, 0.6), labels=84),
        cell("votes", steps=70, winners=(0.6, 0.5, 0.6)),
    ]
    rules, found = judged_rules(cells), worths(cells)
    assert arm_table(cells)[1][:5] == ("trap", "votes", "7", "0.900", "0.100")
    assert cost_table(cells)[1][:-1] == ("trap", "votes", "7", "0", "1,000", "5,000")
    assert cost_table(cells)[1][-1].startswith("-0.100 (")
    assert cost_table(cells)[2][-1] == ""  # nobody judges in TTRL
    assert start_table(cells)[1] == (
        *("trap", "votes", "0", "30", "0.900", "0.300", "0.100", "27", "0.900", "0.300", "0.100"),
    )
    assert [row[1] for row in trace_table(cells)[1:]] == ["votes"]
    assert [row[0] for row in rule_table(rules)[1:]] == ["A", "B1", "B2", "B3", "B4", "C", "D", "E"]
    json.dumps(plain(cells, rules, found))
    paths = [tmp_path / name for name in ("one.svg", "two.svg")]
    for path in paths:
        draw(cells, found, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    drawn = paths[0].read_text()
    assert "Votes compared with majorities" in drawn
    assert worth_lines(found) == [f"trap votes without labels: {found[0].text}"]
    assert f"votes: {found[0].text}" in drawn
    paths[1].unlink()
    paths[1].symlink_to(tmp_path / "letters")  # somebody's file is not written through
    draw(cells, found, paths[1])
    assert not (tmp_path / "letters").exists()
