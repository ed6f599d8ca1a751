"""Why this reward: the explanation of a turn against numbers worked out by hand, and the law of formulas."""

import re
from dataclasses import fields, replace
from decimal import Decimal
from itertools import product
from math import isclose
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debate import Completion, Debate, DebateConfig, Persona, Problem, Turn, Vote
from debate.types import FailureReason, ParsedTurn, ParseFailure, Span, TurnId
from debate_rl.config import Config
from debate_rl.inspector.blocks import Layout, lines_of
from debate_rl.inspector.runs import config_of
from debate_rl.inspector.views.why import Number, Why, why
from debate_rl.inspector.views.why_text import why_blocks
from debate_rl.rollouts.records import step_records
from envs.registry import key_by_itself
from learner.advantages import AdvantageConfig, StreamSettings, TurnAdvantage, turn_advantages
from learner.rows import token_advantages
from learner.token_streams import GENERATOR, JUDGE
from learner.types import group_indices, transitions_of
from rewards import RewardConfig, score_debate, score_debates
from rewards.peer import PEER_RULES
from rewards.types import Verdicts
from transcripts import RunStore, TranscriptError, write_step

A, B, C, D = (TurnId(agent, 0) for agent in range(4))
NAMES = ("Ann", "Bob", "Cyd", "Dan")


def held(votes, answers=("4", "4", "5", "5"), *, problem="p", gold="4", failures=()):
    """A debate of four agents, one round and a ballot; a vote is (judge, left, right, outcome)."""
    texts = {judge: "".join(f"<{n}>" for n in range(len(votes))) for judge in range(4)}
    cast = tuple(Vote(TurnId(j, 1), *vote, Span(3 * n, 3 * n + 3)) for n, (j, *vote) in enumerate(votes))

    def turn(agent, round_):
        shown = tuple(t for t in (A, B, C, D) if t.agent != agent) if round_ else ()
        parsed = ParsedTurn(
            answer=None if round_ else answers[agent],
            failures=tuple(ParseFailure(r, "what") for j, r in failures if (j, round_) == (agent, 1)),
        )
        said = Completion((), (), (), texts[agent], "stop", 0)
        return Turn(TurnId(agent, round_), f"K{agent}", shown, said, parsed, shown, ballot=round_ == 1)

    turns = tuple(turn(agent, round_) for round_ in range(2) for agent in range(4))
    protocol = DebateConfig(num_agents=4, num_rounds=1)
    personas = tuple(Persona(name, "") for name in NAMES)
    return Debate(Problem(problem, "?", gold), personas, turns, cast, 1, 0, protocol)


def graded(debate):
    gold, answers = debate.problem.answer, [debate.turns[agent].parsed.answer for agent in range(4)]
    return gold and tuple(("missing" if answer is None else answer == gold,) for answer in answers)


def write(run, config, steps):
    """Write steps of debates as training pays them under a configuration; return the records."""
    size, ema, found = config.train.group_size, {}, []
    for step, debates in enumerate(steps):
        correct = [graded(debate) for debate in debates]
        groups = group_indices([debate.problem.id for debate in debates], size)
        scheme, seed = config.rewards, config.seed
        paid, credits = score_debates(debates, correct, groups, scheme, seed=seed, key=key_by_itself)
        transitions = transitions_of(debates, paid, groups)
        advantages = turn_advantages(transitions, config.rewards, config.advantages, ema)
        records = step_records(step, debates, correct, paid, advantages.turns, credits=credits)
        write_step(run / "transcripts", step, records)
        found += records
    return found


def configured(size=2, rewards=None, advantages=None, verifier=None):
    tables = {"run": {"dir": "x"}, "env": {"kind": "pair_sum"}, "model": {"name_or_path": "any"}}
    tables |= {"endpoints": {"judge": {"policy": "any:any"}}, "train": {"group_size": size}}
    own = {"rewards": rewards, "advantages": advantages, "verifier": verifier}
    return Config.model_validate(tables | {name: table or {} for name, table in own.items()})


def explained(run, config, id, turn):
    with RunStore.open(run) as store:
        return named_facts(why(store, config, id, turn))


def stream_of(found, name):
    return next(stream for stream in found.streams if stream.name == name)


def named_facts(value):
    """The explanation, with its facts by name as attributes."""
    if isinstance(value, Why):
        parts = {field.name: named_facts(getattr(value, field.name)) for field in fields(value)}
        return SimpleNamespace(**parts, of=value)
    if isinstance(value, dict):
        return SimpleNamespace(**{name: named_facts(item) for name, item in value.items()})
    if isinstance(value, list | tuple) and value and isinstance(value[0], dict):
        return [named_facts(item) for item in value]
    return value


def lines(found):
    """What every screen prints of an explanation."""
    return ["".join(span.text for span in row).strip() for row in lines_of(why_blocks(found.of), Layout())]


# A beats B before Cyd and Dan; Cyd prefers D to A, though A is right and D wrong; three lines do not count.
VOTES = [(2, A, B, "left"), (3, A, B, "left"), (2, A, D, "right"), (3, B, C, "tie"), (1, A, C, "left")]
VOTES += [(1, A, A, "left"), (0, A, C, "left"), (3, A, B, "left")]
BOTH = [[held(VOTES), held((), ("5", "5", "5", None))]]
"""A step of one group; in the second debate nobody is right, and nobody votes."""


def test_the_chain_of_a_margin_worked_out_by_hand(tmp_path):
    config = configured()
    write(tmp_path, config, BOTH)
    found = explained(tmp_path, config, "0.0", A)
    assert (found.matches, found.notes) == (True, ())
    assert (found.persona, found.problem, found.ballot) == ("Ann", "p", False)

    peer = found.peer
    assert (peer.rule, peer.won, peer.lost, peer.ties) == ("margin", 3, 1, 0)
    assert [vote.judge.agent for vote in peer.votes] == [2, 3, 2, 1, 1, 0, 3]
    assert [vote.result for vote in peer.votes] == ["won", "won", "lost", *["won"] * 4]
    assert [vote.why_not for vote in peer.votes] == [*[""] * 4, "same_handle", "own_work", "duplicate"]
    assert [vote.counts for vote in peer.votes] == [True] * 4 + [False] * 3
    assert (peer.votes[2].line, peer.votes[2].persona) == ("<2>", "Cyd")
    results = [(one.turn, one.won, one.lost, one.ties, one.sign) for one in peer.opponents]
    assert results == [(B, 2, 0, 0, 1), (C, 1, 0, 0, 1), (D, 0, 1, 0, -1)]
    assert (peer.reward.value, peer.reward.formula) == (0.5, "(3 - 1) / (3 + 1 + 0)")
    assert peer.reward.text == "(3 - 1) / (3 + 1 + 0) = 0.5"
    assert (peer.reward.stored, peer.reward.matches) == (0.5, True)

    assert (found.truth.grade, found.truth.setting, found.truth.answer) == (True, "truth_correct", "4")
    assert (found.truth.reward.value, found.truth.reward.matches) == (1.0, True)
    assert (found.judge.votes, found.judge.reward.value, found.judge.reward.matches) == ([], None, True)
    assert (found.format.due, found.format.reward.value) == (False, 0.0)

    of_peer, of_truth, of_judge = found.streams
    assert of_peer.members == []  # nothing is compared without baseline and scale
    assert (of_peer.advantage.value, of_peer.advantage.formula) == (0.5, "0.5")
    # two of eight are right: mean 1/4, variance 3/16
    assert [(m.id, m.turn.agent) for m in of_truth.members] == [(f"0.{n // 4}", n % 4) for n in range(8)]
    assert [(m.value, m.this) for m in of_truth.members] == [(1, True), (1, False), *[(0, False)] * 6]
    spread, advantage = (3 / 16) ** 0.5, of_truth.advantage.value
    assert (of_truth.centre.value, of_truth.spread.value) == pytest.approx((0.25, spread))
    assert advantage == pytest.approx(0.75 / (spread + 1e-4))
    assert (of_judge.advantage.value, of_judge.advantage.source) == (None, "no value, no signal")

    total = found.total
    assert (total.generator.value, total.peer.value) == pytest.approx((0.25 + 0.5 * advantage, 0.25))
    assert total.generator.matches is total.judge.matches is True
    assert total.format.value is None


def test_the_chain_of_a_ballot_worked_out_by_hand(tmp_path):
    config = configured(rewards={"judge_truth_weight": 0.25})
    broken = ((3, FailureReason.NOT_A_COMPARISON),)
    write(tmp_path, config, [[held(VOTES, failures=broken), BOTH[0][1]]])
    cyd = explained(tmp_path, config, "0.0", TurnId(2, 1))
    assert (cyd.ballot, cyd.peer, cyd.truth) == (True, None, None)
    first, second = cyd.judge.votes
    # both right, so truth decides nothing; Dan too says that A is better
    assert (first.left_right, first.truth, first.others, first.consensus) == ((True, True), None, 1, 1)
    assert (first.value.value, first.value.source) == (1.0, "consensus")
    # D is wrong and A right, nobody else compared them
    assert (second.truth, second.others, second.consensus, second.value.value) == (-1, 0, None, -1.0)
    assert cyd.judge.reward.value == 0.0  # the mean of 1 and -1
    assert (cyd.format.due, cyd.format.counted) == (True, 2)
    assert ["✓ right, ✗ wrong" in line for line in lines(cyd) if line.endswith("<2>")] == [True]

    failures = explained(tmp_path, config, "0.0", TurnId(3, 1)).format.failures
    assert failures == [("not_a_comparison", "what")]
    fined = explained(tmp_path, config, "0.1", TurnId(3, 1))
    assert (fined.matches, fined.format.reward.value) == (True, -0.5)
    assert fined.format.reward.source.startswith("comparisons were due and no vote is valid")
    assert fined.total.format.value == -0.1875  # of the 8 that owed a vote 5 gave none: -0.5 + 0.3125
    assert fined.judge.reward.source == "the turn gave no valid vote"


@pytest.mark.parametrize("overlong", [{"penalty": -0.25}, "mask"])
def test_a_reply_that_ended_at_its_limit_is_explained(tmp_path, overlong):
    """Dan's solution, the one of 8: -0.25 less the mean of the group; and his ballot, no solution."""
    config = configured(rewards={"overlong": overlong})
    dan, debate = (TurnId(3, 0), TurnId(3, 1)), held(())
    cut = {turn.id: replace(turn.completion, stop_reason="length") for turn in debate.turns if turn.id in dan}
    turns = (replace(turn, completion=cut.get(turn.id, turn.completion)) for turn in debate.turns)
    write(tmp_path, config, [[replace(debate, turns=tuple(turns)), held(VOTES)]])
    solution, ballot = (explained(tmp_path, config, "0.0", turn) for turn in dan)
    assert (solution.matches, ballot.matches, ballot.format.reward.value) == (True, True, -0.5)
    if overlong == "mask":
        assert ballot.total.format.value is None
        for found in (solution, ballot):
            assert found.notes[0].startswith(
                'rewards.overlong = "mask": the reply was cut at its token limit'
            )
        return
    assert ballot.total.format.value == -0.1875  # 5 of 8 gave no vote
    shaping = stream_of(solution, "shaping")
    assert (shaping.reward.value, shaping.reward.formula) == (-0.25, "0.0 + 0.0 + (-0.25) + 0.0")
    assert solution.total.shaping.value == pytest.approx(-0.25 + 0.25 / 8)
    assert ("0.22 (shaping: novelty, copying or length)" in solution.sentence, solution.notes) == (True, ())


def test_what_each_weighed_vote_is_worth(tmp_path):
    votes = [(2, A, D, "left"), (1, A, D, "right")]
    config = configured(size=1, rewards={"judge_truth_weight": 0.75})
    write(tmp_path, config, [[held(votes)]])
    [vote] = explained(tmp_path, config, "0.0", TurnId(2, 1)).judge.votes
    assert (vote.truth, vote.others, vote.consensus) == (1, -1, -1)
    assert (vote.value.value, vote.value.source) == (0.5, "truth and consensus")  # 3/4 - 1/4
    write(tmp_path / "turned", config, [[held([(2, D, A, "right"), (1, A, D, "right")])]])
    [vote] = explained(tmp_path / "turned", config, "0.0", TurnId(2, 1)).judge.votes
    assert (vote.left, vote.truth, vote.others, vote.consensus) == (D, 1, 1, -1)


def lazy(votes, *, alpha):
    return {side: 0.125 for vote in votes for side in (vote.left, vote.right)}


def broken(votes, *, alpha):
    raise RuntimeError("no more")


@pytest.mark.parametrize(
    ("rule", "formula", "value"),
    [
        ("win_rate", "(3 + 0 / 2) / (3 + 1 + 0)", 0.75),
        ("net_wins", "3 - 1", 2.0),
        ("copeland", None, 1 / 3),  # better than two of three, worse than one
        ("bradley_terry", None, None),
        ("lazy", "", 0.125),  # a rule of one's own is its value
        ("broken", "", None),
    ],
)
def test_the_arithmetic_of_the_other_counting_rules(tmp_path, monkeypatch, rule, formula, value):
    monkeypatch.setitem(PEER_RULES, "lazy", lazy)
    monkeypatch.setitem(PEER_RULES, "broken", broken)
    plain = {"peer": {"baseline": "group", "scale": "none"}}
    config = configured(rewards={"peer": "margin" if rule == "broken" else rule}, advantages=plain)
    write(tmp_path, config, [[held(VOTES), held(())]])
    found = explained(tmp_path, configured(rewards={"peer": rule}, advantages=plain), "0.0", A)
    if rule == "broken":
        assert re.fullmatch("step 0 cannot be recomputed.*RuntimeError: no more", found.notes[0])
        assert found.peer.reward.stored == 0.5
        return
    peer = found.peer
    if rule == "bradley_terry":
        scores = {one.turn: one.score for one in peer.opponents}
        assert set(scores) == {B, C, D}
        value = -sum(scores.values())
        assert all((one.beats > 0.5) == (one.score < peer.reward.value) for one in peer.opponents)
    assert (peer.reward.value, found.matches) == (pytest.approx(value), True)
    assert formula in (None, peer.reward.formula)


def test_a_verifier_models_preference_is_shown_as_a_part_of_the_vote(tmp_path):
    scheme = {"judge_verdict_weight": 0.25, "judge_ties": "reward"}
    plain, local = {"judge": {"baseline": "none", "scale": "none"}}, {"endpoint": "judge"}
    config = configured(size=1, rewards=scheme, advantages=plain, verifier=local)
    verdicts = Verdicts("m", 0.5, ((0.9,), (0.9,), (0.2,), (0.4,)))
    debate = held([(2, A, D, "right"), (3, A, B, "tie"), (1, C, D, "right")])
    correct, scores = graded(debate), config.rewards
    paid = score_debate(debate, correct, scores, verdicts)
    found = turn_advantages(transitions_of([debate], [paid], [0]), scores, config.advantages, {})
    records = step_records(0, [debate], [correct], [paid], found.turns, verdicts=[verdicts])
    write_step(tmp_path / "transcripts", 0, records)
    for judge, wanted, source in (
        (2, (-1, -1, -1.0), "truth and verdict"),  # A is right and scores higher
        (3, (1, None, 1.0), "truth"),  # two right ones of equal score
        (1, (0, 1, 0.25), "truth and verdict"),  # two wrong ones, D scores higher
    ):
        explanation = explained(tmp_path, config, "0.0", TurnId(judge, 1))
        [vote] = explanation.judge.votes
        assert (vote.truth, vote.verdict, vote.value.value) == wanted
        assert (vote.value.source, explanation.matches) == (source, True)


@pytest.mark.parametrize("mix", ["advantages", "rewards"])
def test_what_is_new_and_what_later_rounds_give_are_explained(tmp_path, mix):
    rewards = {"novelty_bonus": 0.3, "length_penalty": -0.1, "mix": mix}
    config = configured(rewards=rewards, advantages={"discount": 0.5})
    write(tmp_path, config, [[held(VOTES, ("4", "5", "5", "6")), held((), ("5", "5", "5", None))]])
    found = explained(tmp_path, config, "0.0", A)  # the one "4" of its debate
    assert found.matches is True
    shaping = stream_of(found, "shaping")
    assert (shaping.reward.value, shaping.reward.formula) == (0.3, "0.3 + 0.0 + 0.0 + 0.0")
    # 2 of the 8 answers of the group are new: A's and Dan's
    assert shaping.advantage.value == pytest.approx(0.3 - 0.3 * 2 / 8)
    assert "shaping: novelty, copying or length" in found.sentence
    assert any(line.startswith("part of shaping") for line in lines(found))
    credit = stream_of(found, "truth" if mix == "advantages" else "mixed")
    assert credit.reward.formula.startswith("0.5 ** 0 * ")


def test_sides_that_are_weighed_alike_show_their_weight(tmp_path):
    config = configured(advantages={"judge": {"key": "pair"}})
    first = held([(2, A, D, "left"), (3, A, C, "right")])  # what is right was shown first: +1 and -1
    second = held([(0, B, C, "left"), (1, A, C, "right"), (2, A, D, "right")], ("5", "5", "4", "4"))
    write(tmp_path, config, [[first, second]])
    found = explained(tmp_path, config, "0.0", TurnId(2, 1))
    judge, form = found.streams
    assert form.name == "format"
    assert [(one.id, one.value) for one in judge.members] == [("0.0", 1.0), ("0.0", -1.0)]
    # 5 turns, 2 of them with the right solution first
    assert judge.advantage.formula == "(5 / (2 * 2)) * (1.0 - 0.0) / 1.0001"
    assert judge.advantage.value == pytest.approx(1.25 / 1.0001)
    assert found.matches is True
    shown = lines(found)
    head = next(line for line in shown[shown.index("by turn of the group") :] if "persona" in line)
    assert head.split() == ["debate", "turn", "persona", "value", "this", "turn"]  # no grades of solutions


def test_it_begins_with_one_sentence_that_adds_up(tmp_path):
    config = configured()
    write(tmp_path, config, BOTH)

    def said(turn, config=config):
        return explained(tmp_path, config, "0.0", turn).sentence

    # truth: 2 of 8 are right, (1 - 1/4) / (sqrt(3)/4 + 0.0001) / 2 = 0.866, and (0 - 1/4) / ... = -0.289
    right, wrong = "right; 2 of 8 in its group were right", "wrong; 2 of 8 in its group were right"
    assert said(A) == f"+1.12 = +0.25 (3 of 4 votes preferred it) + 0.87 ({right})"
    assert said(D) == f"+0.21 = +0.50 (its one judge preferred it) - 0.29 ({wrong})"
    lost = "-0.33 (0 of 3 votes preferred it, 1 tie)"
    assert said(B) == f"+0.53 = {lost} + 0.87 ({right}) - 0.01 (rounding)"
    # format: 5 of the 8 ballots have no vote, -0.5 + 0.3125 = -0.1875, and 0 + 0.3125
    assert said(TurnId(0, 1)) == "-0.19 (no due vote is valid)"
    voted = "+ 0.31 (a due vote is valid)"
    assert said(TurnId(1, 1)) == f"+1.54 = +1.22 (1 of 1 decidable vote right) {voted} + 0.01 (rounding)"
    assert said(A, None) == "+1.12 = +0.25 (3 of 4 votes preferred it) + 0.87 (right)"  # as stored
    assert lines(explained(tmp_path, config, "0.0", A))[:2] == [
        f"advantage: {said(A)}",
        "all numbers equal the stored values",
    ]


def test_what_is_silent_is_named(tmp_path):
    config = configured(rewards={"format_penalty": 0.0})
    both = [(2, A, B, "left"), (3, A, B, "left")]
    write(tmp_path, config, [[held(both, ("4",) * 4), held(both, ("4",) * 4)]])
    equal = "nothing from truth: all 8 values of its group are equal"
    for turn, said in (
        (A, f"+0.50 (both judges preferred it); {equal}"),
        (C, f"0 (no signal); {equal}"),
        (TurnId(2, 1), "0 (none of its votes has a value)"),  # both sides are right
    ):
        assert explained(tmp_path, config, "0.0", turn).sentence == said


def test_what_is_stored_otherwise_has_its_badge(tmp_path):
    config = configured()
    first, second = write(tmp_path / "old", config, BOTH)
    changed = replace(first.advantages[0], generator=0.125)
    wrong = replace(first, advantages=(changed, *first.advantages[1:]))
    write_step(tmp_path / "new" / "transcripts", 0, [wrong, second])
    found = explained(tmp_path / "new", config, "0.0", A)
    assert (found.matches, found.total.peer.matches) == (False, True)
    assert (found.total.generator.matches, found.total.generator.stored) == (False, 0.125)
    assert ["stored: 0.125" in line for line in lines(found) if "[differs]" in line] == [True]
    stored = explained(tmp_path / "new", None, "0.0", A).sentence
    assert stored.startswith("+0.12 = +0.25 (3 of 4 votes preferred it) + ")
    assert stored.endswith(" (not explained by stored values)")
    assert explained(tmp_path / "new", config, "0.0", B).matches is True


def test_without_a_configuration_there_is_what_is_stored(tmp_path):
    write(tmp_path, configured(), BOTH)
    config, note = config_of(tmp_path)
    assert (config, note.endswith("(no config.toml in it)")) == (None, True)
    found = explained(tmp_path, None, "0.0", A)
    assert found.notes == ("no configuration: only stored values are shown",)
    assert (found.streams, found.matches) == ((), None)
    assert (found.peer.reward.stored, found.peer.reward.value, found.peer.won) == (0.5, None, 3)
    assert found.total.generator.stored is not None
    (tmp_path / "config.toml").write_text("[rewards]\npeer = 'margin'\ntruth_weight = 7\n")
    config, note = config_of(tmp_path)
    assert (config, "config.toml: " in note, note.count("\n")) == (None, True, 0)


def test_what_stood_for_a_gold_answer_is_named_with_the_true_grade_beside(tmp_path):
    scheme = {"labels": 0.0, "pseudo": "majority", "judge_pseudo": True, "truth_weight": 1.0}
    config = configured(rewards=scheme)
    # Five of the eight answers are 5, and 4 is right.
    answers = [("5", "5", "5", "4"), ("5", "5", None, "4")]
    write(tmp_path, config, [[held(VOTES, answers[0]), held((), answers[1])]])
    found = explained(tmp_path, config, "0.0", A)
    assert found.matches is True
    said = "+0.77 (right by the pseudo-label 5 (majority); 5 of 8 in its group were"
    assert found.sentence.startswith(said)
    assert "truth: right by the pseudo-label 5 (majority)" in lines(found)
    assert "✗ wrong against gold, as an audit without reward" in lines(found)
    assert explained(tmp_path, config, "0.0", TurnId(3, 1)).judge.truth_weight == 1.0

    plain = configured(rewards={"labels": 0.0, "truth_weight": 0.0})
    write(tmp_path / "plain", plain, [[held(VOTES), held(())]])
    told = lines(explained(tmp_path / "plain", plain, "0.0", A))
    assert "truth: ungraded: no label" in told
    assert "✓ right against gold, as an audit without reward" in told


def test_a_control_is_named(tmp_path):
    config = configured()
    write(tmp_path, config, [[held(VOTES), held(())]])
    for control, said in (
        ("random_judge", "votes differ from"),
        ("random_reward", "a coin toss replaces truth"),
    ):
        train = config.train.model_copy(update={"control": control})
        [note] = explained(tmp_path, config.model_copy(update={"train": train}), "0.0", A).notes
        assert note.startswith(f"train.control = {control}: {said}")


def test_damaged_lines_of_the_step_are_told(tmp_path):
    config = configured()
    write(tmp_path, config, BOTH)
    shard = tmp_path / "transcripts" / "step_000000.jsonl"
    shard.write_text(shard.read_text().partition("\n")[0] + '\n{"schema":5}\n')
    found = explained(tmp_path, config, "0.0", A)
    assert found.notes == ("1 damaged line in this step; the baselines omit their debates",)
    assert found.total.truth.matches is False
    assert found.streams[1].members[-1].id == "0.0"


def test_what_there_is_not_is_named(tmp_path):
    config = configured()
    write(tmp_path, config, [[held(VOTES), held(())]])
    turns = "no turn 0.5; there are 0.0, 1.0, 2.0, 3.0, 0.1, 1.1, 2.1, 3.1"
    for id, turn, said in (("0.9", A, "0.9"), ("0.0", TurnId(0, 5), turns), ("x", A, "'x'")):
        with pytest.raises(TranscriptError, match=re.escape(said)):
            explained(tmp_path, config, id, turn)


def test_running_means_come_from_the_steps_before(tmp_path, monkeypatch):
    means = {"truth": {"baseline": "rae", "scale": "none"}}
    config = configured(size=1, advantages=means)
    write(tmp_path, config, [[held(())], [held((), ("5",) * 4)], [held(())]])
    found = explained(tmp_path, config, "2.0", A)
    of_truth = found.streams[1]
    # step 0 has the mean 1, and step 1 takes a twentieth of it away
    assert (of_truth.centre.value, of_truth.advantage.value) == pytest.approx((0.95, 0.05))
    assert of_truth.centre.source.endswith("running means from the 2 debates of steps 0 to 1")
    assert of_truth.members == []
    assert found.matches is True
    monkeypatch.setattr("debate_rl.replay.scheme.MOST_BEFORE", 1)
    found = explained(tmp_path, config, "2.0", A)
    centre, generator = found.streams[1].centre, found.total.generator
    assert centre.source.endswith("the running means depend on more than 1 earlier debates")
    assert (centre.value, generator.value, generator.stored) == (None, None, pytest.approx(0.025))
    assert (generator.matches, found.total.judge.matches) == (None, True)


OUTCOMES = st.sampled_from(["left", "right", "tie"])
CAST = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([A, B, C, D]), st.sampled_from([A, B, C, D]), OUTCOMES),
    max_size=14,
)
ANSWERS = st.lists(st.sampled_from(["4", "5", None]), min_size=4, max_size=4)
BASELINES, SCALES = ("group", "rloo", "rae", "none"), ("group", "batch", "none")
KEYS = ("round", "persona", "persona_effect", "debate", "context")
STREAM = [
    StreamSettings(baseline=baseline, scale=scale, key=key)
    for baseline, scale, key in product(BASELINES, SCALES, KEYS)
    if key in ("round", "persona") or baseline in ("group", "rloo")
]
SCHEMES = st.builds(
    RewardConfig,
    peer=st.sampled_from(["margin", "copeland", "bradley_terry"]),
    truth_weight=st.sampled_from([0.0, 0.3, 1.0]),
    truth_wrong=st.sampled_from([0.0, -0.7]),
    judge_truth_weight=st.sampled_from([None, 0.25, 0.0]),
    mix=st.sampled_from(["advantages", "rewards"]),
    labels=st.sampled_from([1.0, 0.0]),
    pseudo=st.sampled_from(["none", "majority", "voted"]),
    judge_pseudo=st.booleans(),
    peer_weight=st.sampled_from(["rest", "routed"]),
)
ADVANTAGES = st.builds(
    AdvantageConfig,
    peer=st.sampled_from(STREAM),
    truth=st.sampled_from(STREAM),
    mixed=st.sampled_from(STREAM),
    judge=st.sampled_from([*STREAM, StreamSettings(key="pair"), StreamSettings(key="pair", scale="batch")]),
    lambda_gen=st.sampled_from([1.0, 0.7]),
    lambda_judge=st.sampled_from([0.0, 1.3]),
)
HOLD = st.builds(held, CAST, ANSWERS, gold=st.sampled_from(["4", None]))


@pytest.mark.slow
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(HOLD, min_size=1, max_size=3), min_size=1, max_size=2), SCHEMES, ADVANTAGES)
def test_the_formula_of_a_number_gives_it_and_it_is_as_stored(tmp_path_factory, steps, rewards, advantages):
    run = tmp_path_factory.mktemp("run")
    config = configured().model_copy(update={"rewards": rewards, "advantages": advantages})
    write(run, config, steps)
    last = len(steps) - 1
    with RunStore.open(run) as store:
        for turn in (A, TurnId(1, 1), TurnId(3, 0)):
            found = named_facts(why(store, config, f"{last}.0", turn))
            assert (found.matches, found.notes) == (True, ())
            checked = [number for number in found.of.numbers() if number.formula]
            assert all(holds(number) for number in checked)
            assert len(checked) >= 1  # the fine at least
            assert not any("[differs]" in line for line in lines(found))
            for stream in found.streams:
                assert stream.advantage.formula or stream.advantage.value is None
            generator = found.total.generator
            assert (generator.formula == "") == (generator.value is None)
            add_up(found)


def add_up(found):
    """The sentence begins with what tokens of the turn get, and its sums hold in the digits they have."""
    total = found.total
    parts = TurnAdvantage(total.generator.value, total.judge.value, total.format.value)
    by_stream = token_advantages(np.array([GENERATOR, JUDGE], np.int8), parts)
    solution, *votes = found.sentence.split("its votes: ")
    told = [solution, *votes]
    wanted = by_stream[1:] if found.ballot else by_stream[: len(told)]
    assert len(told) == len(wanted)
    for text, value in zip(told, wanted, strict=True):
        if text.startswith("0 ("):
            assert value == 0
            continue
        first, equals, rest = text.partition(" = ")
        shown = Decimal(re.match(r"[+-]\d+\.\d+", first)[0])
        digits = -shown.as_tuple().exponent
        assert 2 <= digits <= 6
        assert abs(float(shown) - value) <= 0.5 * 10**-digits + 1e-6
        if equals:
            figures = re.findall(r"(?:^|(?<=\) ))([+-]) ?(\d+\.\d+) \(", rest)
            assert len(figures) >= 2
            assert sum(Decimal(sign + figure) for sign, figure in figures) == shown
            assert "does not explain" not in rest


def holds(number: Number) -> bool:
    value = eval(number.formula, {"__builtins__": {}, "max": max})
    return number.value is not None and isclose(value, number.value, rel_tol=1e-9, abs_tol=1e-9)


def test_to_look_at_a_run_runs_no_code_that_it_names(tmp_path, monkeypatch):
    ran = tmp_path / "ran"
    (tmp_path / "theirs.py").write_text(
        f"import pathlib\npathlib.Path({str(ran)!r}).touch()\ndef rule(votes, *, alpha): return {{}}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "config.toml").write_text('[model]\nname_or_path = "m"\n[rewards]\npeer = "theirs:rule"\n')
    config, note = config_of(tmp_path)
    assert (config, "rewards.peer='theirs:rule' names code" in note, ran.exists()) == (None, True, False)
    monkeypatch.setenv("DEBATE_OWN_CODE", "1")
    assert config_of(tmp_path)[0] is not None
    assert ran.exists()
