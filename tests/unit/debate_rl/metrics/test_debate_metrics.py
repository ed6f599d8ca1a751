from dataclasses import replace

import pytest
from msgspec.structs import replace as msgspec_replace

from debate import Completion, Debate, DebateConfig, Problem, Turn, Vote
from debate.personas import PERSONAS
from debate.types import FailureReason, Outcome, ParsedTurn, ParseFailure, Span, TurnId
from debate_rl.metrics.answers import answer_metrics, pass_at_k
from debate_rl.metrics.debates import debate_metrics, judge_metrics, length_metrics, size_metrics
from rewards import RewardConfig, score_debate

CONFIG = DebateConfig(num_agents=3, num_rounds=1)
FAILED = (ParseFailure(FailureReason.UNCLOSED_SECTION, "comparison"),)


def solution(agent: int, answer: str | None, *, tokens: int = 4, stop: str = "stop") -> Turn:
    text = f"<solution>{answer}</solution>"
    completion = Completion((1,) * 10, (2,) * tokens, (0.0,) * tokens, text, stop, 0, tuple(range(tokens)))
    return Turn(TurnId(agent, 0), "ABC"[agent], (), completion, ParsedTurn(Span(10, 11), answer=answer))


def ballot(agent: int, *, failures: tuple[ParseFailure, ...] = ()) -> Turn:
    shown = tuple(TurnId(a, 0) for a in range(3))
    compared = tuple(t for t in shown if t.agent != agent)
    completion = Completion((1,) * 20, (2, 3), (0.0, 0.0), "vote", "stop", 0, (0, 4))
    parsed = ParsedTurn(failures=failures)
    return Turn(TurnId(agent, 1), "ABC"[agent], shown, completion, parsed, compared, ballot=True)


def vote(judge: int, left: int, right: int, outcome: Outcome) -> Vote:
    return Vote(TurnId(judge, 1), TurnId(left, 0), TurnId(right, 0), outcome)


def debate(answers: list[str | None], votes: list[Vote], problem: str = "p") -> Debate:
    voters = {v.judge.agent for v in votes}
    ballots = [ballot(a, failures=() if a in voters else FAILED) for a in range(3)]
    turns = (*(solution(a, text) for a, text in enumerate(answers)), *ballots)
    return Debate(Problem(problem, "?", "4"), PERSONAS[:3], turns, tuple(votes), 5, 0, CONFIG)


# Agent 0 right, 1 wrong, 2 gave no answer. Votes: 2 says 0 > 1 (right), 1 says 2 > 0 (wrong), 0 is silent.
MIXED = debate(["4", "5", None], [vote(2, 0, 1, "left"), vote(1, 2, 0, "left")])
MIXED_TABLE = ((True,), (False,), ("missing",))
# All right; 0 and 1 call a tie, 2 votes twice the same. Nothing is decidable.
TIES = [vote(0, 1, 2, "tie"), vote(1, 0, 2, "tie"), vote(2, 0, 1, "left"), vote(2, 1, 0, "right")]
ALIKE = debate(["4", "4.0", "4"], TIES)
ALIKE_TABLE = ((True,), (True,), (True,))


def figures() -> dict[str, float]:
    debates, tables = [MIXED, ALIKE], [MIXED_TABLE, ALIKE_TABLE]
    rewards = [score_debate(d, t, RewardConfig()) for d, t in zip(debates, tables, strict=True)]
    return debate_metrics(debates, tables, rewards, evaluation="judge", grader={"timeout": 2})


def test_the_figures_of_two_debates_by_hand():
    m = figures()
    # peer: MIXED (1-1)/2=0, -1, +1; ALIKE (1+0)/2=.5, (-1+0)/2=-.5, 0 -> mean 0, variance 2.5/6
    assert m["reward/peer/mean"] == pytest.approx(0.0)
    assert m["reward/peer/std"] == pytest.approx((2.5 / 6) ** 0.5)
    assert m["reward/peer/n"] == 6
    assert m["reward/truth/mean"] == pytest.approx(4 / 6)
    assert (m["reward/judge/mean"], m["reward/judge/n"]) == (0.0, 2)  # +1 and -1; the rest undecidable
    assert m["reward/format/mean"] == pytest.approx(-0.5 / 12)  # one silent judge among 12 turns
    assert (m["votes/cast"], m["votes/valid"], m["votes/ties"], m["votes/duplicate"]) == (6, 5, 2, 1)
    assert (m["votes/contradictory"], m["votes/own_work"], m["votes/not_due"]) == (0, 0, 0)
    assert (m["judge/decidable_votes"], m["judge/decidable_pairs"]) == (2, 2)
    assert (m["judge/accuracy"], m["judge/strict_accuracy"], m["judge/coverage"]) == (0.5, 0.5, 1.0)
    assert m["judge/parsed_share"] == pytest.approx(5 / 6)
    assert m["judge/signal_share"] == pytest.approx(2 / 6)
    assert m["accuracy"] == m["accuracy/round_0"] == m["avg@6"] == pytest.approx(4 / 6)
    assert m["pass@1"] == pytest.approx(4 / 6)
    assert m["pass@2"] == pytest.approx(1 - 1 / 15)  # two wrong ones drawn: 1 of 15 pairs
    assert (m["pass@4"], m["pass@6"], m["cons@6"]) == (1, 1, 1)
    assert (m["accuracy/all_right"], m["accuracy/all_wrong"]) == (0, 0)
    assert (m["winner/n"], m["winner/accuracy"]) == (2, 0.5)  # MIXED elects the one without an answer
    assert m["winner/lift"] == pytest.approx(((0 - 1 / 3) + (1 - 1)) / 2)
    assert m["format/valid"] == pytest.approx(10 / 12)
    assert m["format/no_comparison"] == m["format/no_answer"] == pytest.approx(1 / 12)
    assert m["malformed/unclosed_section"] == pytest.approx(1 / 12)
    assert m["missing"] == pytest.approx(1 / 6)
    assert (m["truncated"], m["tokens/completion"], m["tokens/generated"]) == (0, 3.0, 36)
    assert (m["tokens/generator"], m["tokens/judge"], m["tokens/prompt"]) == (2.0, 1.0, 15.0)
    assert m["completions/distinct"] == pytest.approx(4 / 6)
    assert (m["grader/timeout"], m["grader/crash"]) == (2, 0)


def test_an_open_problem_has_no_truth_and_no_zero_in_its_place():
    rewards = score_debate(ALIKE, None, RewardConfig())
    m = debate_metrics([ALIKE], [None], [rewards], evaluation="judge")
    assert m["reward/truth/n"] == 0
    assert not {"reward/truth/mean", "accuracy", "judge/accuracy", "winner/accuracy", "pass@1"} & m.keys()
    assert m["reward/peer/mean"] == pytest.approx(0.0)


def test_no_debates_give_counts_of_zero_and_no_means():
    m = debate_metrics([], [], [], evaluation="judge")
    assert set(m.values()) == {0.0}
    assert "format/valid" not in m


def test_an_ungraded_side_makes_a_pair_undecidable_and_takes_no_part_in_accuracy():
    table = ((True,), (None,), ("missing",))  # only agent 1's vote, 2 > 0, is about graded sides
    wanted = {"decidable_votes": 1.0, "decidable_pairs": 1.0, "coverage": 1.0}
    wanted |= {"accuracy": 0.0, "strict_accuracy": 0.0}
    assert judge_metrics([MIXED], [table]) == {f"judge/{name}": value for name, value in wanted.items()}
    assert answer_metrics([MIXED], [table])["accuracy"] == 0.5


def test_a_missing_vote_lowers_coverage_and_strict_accuracy_only():
    table = ((True,), (False,), (True,))  # decidable: 0-1 (judge 2, right), 1-2 (judge 0, silent)
    m = judge_metrics([MIXED], [table])
    assert (m["judge/accuracy"], m["judge/coverage"], m["judge/strict_accuracy"]) == (1.0, 0.5, 0.5)


def test_a_tie_on_a_decidable_pair_is_not_right():
    tied = debate(["4", "5", "6"], [vote(2, 0, 1, "tie")])
    assert judge_metrics([tied], [((True,), (False,), (False,))])["judge/accuracy"] == 0.0


def test_problems_weigh_alike_in_the_at_k_figures():
    other = debate(["1", "2", "4"], [], problem="q")
    m = answer_metrics([MIXED, ALIKE, other], [MIXED_TABLE, ALIKE_TABLE, ((False,), (False,), (True,))])
    assert m["avg@3"] == pytest.approx((4 / 6 + 1 / 3) / 2)
    assert m["cons@3"] == pytest.approx((1 + 1 / 3) / 2)  # three answers to q, one each: a fair draw
    assert m["pass@2"] == pytest.approx((14 / 15 + 2 / 3) / 2)


def test_equal_samples_show_in_the_distinct_share():
    same = debate(["4"] * 3, [])
    assert length_metrics([same, same], evaluation="judge")["completions/distinct"] == pytest.approx(1 / 6)


def test_forced_tokens_are_in_no_stream():
    forced = [replace(turn, completion=replace(turn.completion, forced=(1,))) for turn in MIXED.turns]
    m = length_metrics([replace(MIXED, turns=tuple(forced))], evaluation="judge")
    # 3 solutions of 4 tokens, 3 ballots of 2
    assert (m["tokens/completion"], m["tokens/generator"], m["tokens/judge"]) == (3.0, 1.5, 0.5)


@pytest.mark.parametrize("k", [0, 4])
def test_pass_at_k_refuses_an_impossible_k(k: int):
    with pytest.raises(ValueError, match="1 <= k <= n"):
        pass_at_k(3, 0, k)


def test_a_majority_counts_wrong_answers_however_they_are_written():
    held = debate(["4", "5.0", r"\frac{10}{2}"], [])
    table = ((True,), (False,), (False,))
    assert answer_metrics([held], [table])["cons@3"] == 0.0
    by_text = answer_metrics([held], [table], key=lambda problem, text: text)
    assert by_text["cons@3"] == pytest.approx(1 / 3)


def stopped(answers: list[str | None], problem: str = "p", *, saved: int = 2) -> Debate:
    """A debate that ended after round 0 of three."""
    return msgspec_replace(debate(answers, [], problem), rounds_saved=saved)


def test_a_stopped_debate_has_its_answers_in_the_rounds_that_it_saved():
    # p: all right, stopped after one of three rounds; q: one round of one, one right of three.
    debates = [stopped(["4", "4", "4"]), debate(["4", "5", "6"], [], "q")]
    tables = [((True,), (True,), (True,)), ((True,), (False,), (False,))]
    m = answer_metrics(debates, tables)
    assert [m[f"accuracy/round_{r}"] for r in range(3)] == [4 / 6, 1.0, 1.0]
    assert (m["accuracy"], m["accuracy/n"]) == (10 / 12, 6)  # n: answers given, none twice


def test_problems_of_fewer_rounds_are_in_the_figures_of_the_last_round():
    longer = debate(["4", "5", "6"], [], "q")
    longer = msgspec_replace(longer, protocol=DebateConfig(num_agents=3, num_rounds=2))
    later = tuple(msgspec_replace(turn, id=TurnId(turn.id.agent, 1)) for turn in longer.turns)
    longer = msgspec_replace(longer, turns=(*longer.turns, *later))
    tables = [((True,),) * 3, ((True, False),) * 3]
    m = answer_metrics([debate(["4", "4", "4"], []), longer], tables)
    assert (m["avg@3"], m["pass@1"], m["accuracy/round_1"]) == (0.5, 0.5, 0.0)


def test_sizes_are_counted_where_they_may_differ():
    plain, three = debate(["4", "5", "6"], []), DebateConfig(num_agents=3, num_rounds=3)
    held = [plain, stopped(["4", "4", "4"], "q"), stopped(["4", "4", "4"], "r")]
    assert size_metrics(held, three) == {}
    may_stop = three.model_copy(update={"min_rounds": 1})
    assert size_metrics(held, may_stop) == {"rounds": 1.0, "stopped": pytest.approx(2 / 3)}
    longer = msgspec_replace(plain, protocol=three)
    by_level = DebateConfig(num_rounds=3, by_level=({"level": 1, "num_rounds": 1},))  # type: ignore[arg-type]
    assert size_metrics([plain, longer], by_level) == {"agents": 3.0, "rounds": 2.0}
