import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from debate import DebateConfig, Problem, run_debates
from debate.policies.scripted import Answers, ScriptedPolicy, scripted_debaters
from debate.prompting.fitting import context_budget
from debate.prompting.prompt import check_fits
from debate.prompting.reading import read_prompt
from debate.prompting.rebuilding import held_debate
from debate.prompting.texts import load_prompts
from debate.types import SampleRequest, TurnId
from debate_rl.evaluation.play import _is_whole
from debate_rl.metrics.debates import debate_metrics
from rewards import RewardConfig, score_debate
from rewards.truth import grades_of_solutions

PROBLEM = Problem("p", "What is 2 + 2?", "4")
GAME = DebateConfig(protocol="zero_sum", num_agents=4, num_rounds=1)
PURE = RewardConfig(truth_weight=0.0)


def held(config=GAME, seed=7, **chances):
    policy = scripted_debaters(
        {"p": Answers("4", ("5", "6"))}, prompts=config.prompts, tokens=True, **chances
    )
    return run_debates([PROBLEM], policy, config, seed=seed)[0]


def graded(debate):
    table = [[None] for _ in debate.personas]
    for turn in debate.turns:
        if not turn.ballot:
            table[turn.id.agent][0] = turn.parsed.answer == "4"
    return table


@pytest.mark.parametrize("prompts", ["default", "tiny"])
@pytest.mark.parametrize("agents", [3, 4])
def test_the_proposer_solves_the_critic_answers_and_the_others_judge(agents, prompts):
    config = GAME.model_copy(update={"num_agents": agents, "prompts": prompts})
    debate, texts = held(config), load_prompts(prompts)
    judges = [TurnId(agent, 1) for agent in range(2, agents)]
    assert [turn.id for turn in debate.turns] == [TurnId(0, 0), TurnId(1, 0), *judges]
    tasks = [read_prompt(texts, held_debate(debate).prompt(turn.id).messages).task for turn in debate.turns]
    assert tasks == ["opening", "rival", *["ballot"] * len(judges)]
    assert [set(turn.shown) for turn in debate.turns[:2]] == [set(), {TurnId(0, 0)}]
    both = {TurnId(0, 0), TurnId(1, 0)}
    assert all(set(turn.shown) == set(turn.compared) == both for turn in debate.turns[2:])
    assert {vote.judge for vote in debate.votes} == set(judges)
    assert _is_whole(debate)
    check_fits(PROBLEM, ScriptedPolicy({}), config)
    assert context_budget(ScriptedPolicy({}), config).tokens is None


def test_the_critic_reads_what_the_proposer_has_just_written():
    read = {}

    def reply(request: SampleRequest) -> str:
        read[tuple(request.turn)] = request.messages[-1].content
        return f"<solution>by {request.turn.agent}: \\boxed{{{request.turn.agent}}}</solution>"

    run_debates([PROBLEM], ScriptedPolicy(reply), GAME, seed=7)
    assert "by 0" not in read[0, 0]
    assert "by 0" in read[1, 0]
    assert all("by 0" in read[judge, 1] and "by 1" in read[judge, 1] for judge in (2, 3))


@given(st.integers(0, 500), st.sampled_from(["margin", "copeland", "net_wins"]), st.floats(0, 1))
def test_what_one_wins_the_other_loses(seed, rule, judge):
    debate = held(seed=seed, solve=0.5, judge=judge)
    rewards = score_debate(debate, graded(debate), RewardConfig(truth_weight=0.0, peer=rule))
    (proposer,), (critic,), *judges = rewards.peer
    assert judges == [(None,), (None,)]
    assert proposer == -critic
    right = [turn.parsed.answer == "4" for turn in debate.turns[:2]]
    for agent in (2, 3):
        told = rewards.judge[agent][1]
        assert (told is None) == (right[0] == right[1])
        if judge == 1.0 and told is not None:
            assert told == 1.0
    assert rewards.judge[0] == rewards.judge[1] == (None, None)


def test_by_hand():
    """One judge is for the proposer, one for the critic, who is right: margin 0, judges -1 and 1."""

    def reply(request: SampleRequest) -> str:
        said = {(0, 0): "5", (1, 0): "4"}.get(tuple(request.turn))
        if said is not None:
            return f"<solution>\\boxed{{{said}}}</solution>"
        entries = read_prompt(load_prompts("default"), request.messages).entries
        wrong, right = (next(e.handle for e in entries if f"{{{a}}}" in e.solution) for a in ("5", "4"))
        best = (wrong, right) if request.turn.agent == 2 else (right, wrong)
        return f"<evaluation>-</evaluation><comparison>{best[0]} > {best[1]}</comparison>"

    [debate] = run_debates([PROBLEM], ScriptedPolicy(reply), GAME, seed=1)
    rewards = score_debate(debate, graded(debate), PURE)
    assert rewards.peer == ((0.0,), (0.0,), (None,), (None,))
    assert [row[1] for row in rewards.judge] == [None, None, -1.0, 1.0]
    assert [row[0] for row in rewards.truth] == [0.0, 1.0, None, None]
    assert grades_of_solutions(debate, graded(debate)) == [[False], [True]]
    figures = debate_metrics([debate], [graded(debate)], [rewards], evaluation="judge")
    assert figures["accuracy"] == 0.5
    assert figures["judge/accuracy"] == 0.5
    assert figures["missing"] == 0.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_agents": 2}, 'num_agents: 2, but debate.protocol = "zero_sum" needs 3 or more'),
        ({"history_rounds": 0}, "history_rounds: 0"),
        ({"compress": {"over": 2000}}, "compress.over: 2000"),
        ({"seats": ["learning", "frozen"]}, "seats: 2"),
    ],
)
def test_what_does_not_fit_is_refused(settings, message):
    own = {"protocol": "zero_sum", "num_agents": 3, "num_rounds": 1} | settings
    with pytest.raises(ValidationError, match=message):
        DebateConfig.model_validate(own)
