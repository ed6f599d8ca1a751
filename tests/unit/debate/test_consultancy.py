from random import Random

import pytest

from debate import DebateConfig, Problem, run_debates
from debate.policies.scripted import Answers, ScriptedPolicy, scripted_debaters
from debate.prompting.prompt import check_fits
from debate.prompting.reading import read_prompt
from debate.prompting.rebuilding import held_debate
from debate.prompting.seating import seat_debate
from debate.prompting.texts import load_prompts
from debate.types import SampleRequest, TurnId
from debate_rl.config.warm_start import WarmStartConfig, kinds_of_turns
from debate_rl.warm_start.demonstrations import Demonstrator
from envs import load_environment

PROBLEM = Problem("p", "What is 2 + 2?", "4")
CONFIG = DebateConfig(protocol="consultancy", num_agents=4, num_rounds=1)
GAME = CONFIG.model_copy(update={"protocol": "zero_sum"})


def held(config, seed=7):
    policy = scripted_debaters(
        {"p": Answers("4", ("5", "6"))}, prompts=config.prompts, tokens=True, solve=[0.9, 0.2], judge=0.7
    )
    return run_debates([PROBLEM], policy, config, seed=seed)[0]


@pytest.mark.parametrize("prompts", ["default", "tiny"])
def test_both_argue_as_in_the_game_and_judges_read_one_of_them(prompts):
    consultancy, game = (held(config.model_copy(update={"prompts": prompts})) for config in (CONFIG, GAME))
    assert [turn.completion for turn in consultancy.turns[:2]] == [turn.completion for turn in game.turns[:2]]
    texts, past = load_prompts(prompts), held_debate(consultancy)
    consultant = past.seating.consultant
    for judge in (TurnId(2, 1), TurnId(3, 1)):
        entries = read_prompt(texts, past.prompt(judge).messages).entries
        read = {past.seating.handles.index(entry.handle): entry.solution for entry in entries}
        others = read_prompt(texts, held_debate(game).prompt(judge).messages).entries
        whole = {past.seating.handles.index(entry.handle): entry.solution for entry in others}
        silent = 1 - consultant
        answer = consultancy.turn(TurnId(silent, 0)).parsed.answer
        assert read[consultant] == whole[consultant]
        assert read[silent] == texts.answer_alone(answer=answer) != whole[silent]
    assert set(consultancy.turns[2].compared) == {TurnId(0, 0), TurnId(1, 0)}
    check_fits(PROBLEM, ScriptedPolicy({}), CONFIG)


def test_a_coin_of_the_seed_says_who_is_the_consultant():
    consultants = [seat_debate(PROBLEM, CONFIG, seed).consultant for seed in range(1000)]
    assert set(consultants) == {0, 1}
    assert abs(sum(consultants) - 500) < 3 * 1000**0.5 / 2
    assert seat_debate(PROBLEM, GAME, 1).consultant is None


def test_what_has_no_answer_says_nothing_to_the_judge():
    read = {}

    def reply(request: SampleRequest) -> str:
        read[tuple(request.turn)] = request.messages[-1].content
        return f"<solution>by {request.turn.agent}</solution>"

    [debate] = run_debates([PROBLEM], ScriptedPolicy(reply), CONFIG, seed=7)
    consultant = held_debate(debate).seating.consultant
    assert "by 0" in read[1, 0]  # the critic answers to all of the proposal
    for judge in (2, 3):
        assert f"by {consultant}" in read[judge, 1]
        assert f"by {1 - consultant}" not in read[judge, 1]
        assert load_prompts("default").unreadable in read[judge, 1]


def test_judges_are_taught_on_what_they_will_read():
    config = CONFIG.model_copy(update={"num_agents": 3, "prompts": "tiny", "handles": ("K7", "Q2", "M4")})
    assert kinds_of_turns(config) == {"solve", "debate", "drill", "ballot"}
    [problem] = load_environment("pair_sum", levels=[1]).problems(split="train", limit=1, seed=0)
    demonstrator = Demonstrator("pair_sum", config, WarmStartConfig(), Random(0))
    for _ in range(20):
        shown = demonstrator.show("ballot", problem)
        entries = read_prompt(load_prompts("tiny"), shown.messages).entries
        assert sorted(" = " in entry.solution for entry in entries) == [False, True]
        assert all("\\boxed{" in entry.solution for entry in entries)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="num_agents: 2, but"):
        DebateConfig(protocol="consultancy", num_agents=2, num_rounds=1)
