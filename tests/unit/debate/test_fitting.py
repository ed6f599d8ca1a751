"""What a prompt shows, and what gives way when it does not fit."""

import asyncio

import pytest

from debate import Completion, DebateConfig, Problem, Turn, hold_debate
from debate.parsing import parse_turn
from debate.policies import ScriptedPolicy
from debate.prompting.fitting import ContextBudget, PromptTooLongError, context_budget, shorten
from debate.prompting.prompt import agent_prompt, check_fits
from debate.prompting.rendering import render_entry
from debate.prompting.seating import seat_debate
from debate.prompting.shown import PublicTurn, public_turn
from debate.types import TurnId

PROBLEM = Problem("gsm/7", "What is 2 + 2?", "4")


def seen_text(text: str, *, strip: bool = True) -> PublicTurn:
    parsed = parse_turn(text, handles=("K7", "Q2"), own="K7", due=False)
    turn = Turn(TurnId(0, 0), "K7", (), Completion((), (), (), text, "stop", 0), parsed)
    return public_turn(turn, strip=strip)


@pytest.mark.parametrize(
    ("text", "solution", "evaluation"),
    [
        ("<solution> 4 </solution>", "4", None),
        ("<solution>4</solution><evaluation>ok</evaluation>", "4", "ok"),
        ("<solution>4\n<evaluation>ok</evaluation>", "4", "ok"),  # never closed, but its end is known
        ("<solution>so far", None, None),
        ("<solution>4</solution><evaluation>Q2 is ri", "4", None),
        ("<solution>  </solution>", None, None),
        ("<solution>\u200b</solution>", None, None),
        ("just 4", None, None),
        ("<think>hm</think><solution>4</solution>", "4", None),
        ("<solution>4 <comparison>K7 > Q2</comparison></solution>", "4", None),
    ],
)
def test_what_of_a_turn_is_public(text, solution, evaluation):
    seen = seen_text(text)
    assert (seen.solution, seen.evaluation) == (solution, evaluation)


def test_shortening_keeps_the_boxed_answer_and_marks_the_cut():
    text = "a" * 50 + " \\boxed{7} " + "b" * 50
    assert shorten(text, 200, answer="7", mark="[...]") is text
    assert shorten(text, 34, answer="7", mark="[...]") == "a" * 20 + "[...]\\boxed{7}"
    assert shorten(text, 0, answer="7", mark="[...]") == "[...]\\boxed{7}"
    assert shorten(text, 0, answer=None, mark="[...]") == "[...]"
    assert shorten(text, 0, answer="9" * 300, mark="[...]") == "[...]"  # an answer that is itself huge
    assert shorten("abc", 2, answer="abc", mark="[...]") == "abc"  # nothing gained


def seating_and_past(config: DebateConfig, texts: dict[tuple[int, int], str]):
    """Return a seating and the entries of the rounds given as {(agent, round): solution}."""
    seating = seat_debate(PROBLEM, config, 3)
    past = []
    for round_ in range(1 + max(r for _, r in texts)):
        shown = [
            PublicTurn(TurnId(a, round_), seating.handles[a], texts[a, round_], answer=f"{a}{round_}")
            for a in range(config.num_agents)
        ]
        past.append([render_entry(seating.texts, one) for one in shown])
    return seating, past


def characters(messages) -> int:
    return sum(len(message.content) for message in messages)


LONG = DebateConfig(num_rounds=3, history_rounds=-1, prompts="default")
SOLUTIONS = {
    (a, r): f"text of {a} in {r}. " * (10 * (a + 1)) + f"\\boxed{{{a}{r}}}"
    for a in range(3)
    for r in range(3)
}


def cut_view(tokens: int | None):
    seating, past = seating_and_past(LONG, SOLUTIONS)
    return agent_prompt(seating, past, 0, 3, ContextBudget(tokens, characters))


def test_a_prompt_that_just_fits_is_not_cut():
    size = characters(cut_view(None).messages)
    assert cut_view(size) == cut_view(None)
    assert cut_view(size - 1).cut == 3


def test_the_oldest_rounds_go_first_and_the_cut_is_marked_and_counted():
    size = characters(cut_view(None).messages)
    one_round_less = cut_view(size - 1)
    assert {turn.round for turn in one_round_less.shown} == {1, 2}
    assert one_round_less.cut == 3
    assert "(Earlier rounds were left out to fit the space.)" in one_round_less.messages[-1].content
    two_less = cut_view(characters(one_round_less.messages) - 1)
    assert {turn.round for turn in two_less.shown} == {2}
    assert two_less.cut == 6
    assert two_less.compared == cut_view(None).compared


def test_then_the_longest_texts_are_shortened_with_their_answers_kept():
    one_round_less = cut_view(characters(cut_view(None).messages) - 1)
    newest_only = characters(cut_view(characters(one_round_less.messages) - 1).messages)
    seen = cut_view(newest_only - 100)
    text = seen.messages[-1].content
    assert seen.cut == 6 + 1  # the longest text, agent 2's, was enough
    assert text.count("[... shortened to fit the space ...]") == 1
    assert all(f"\\boxed{{{a}2}}" in text for a in range(3))
    assert SOLUTIONS[0, 2] in text
    assert SOLUTIONS[1, 2] in text
    assert newest_only - 110 < characters(seen.messages) <= newest_only - 100  # no more than needed
    shorter = cut_view(newest_only - 300)
    assert shorter.cut == 6 + 2  # agents 1 and 2, to one length
    assert all(f"\\boxed{{{a}2}}" in shorter.messages[-1].content for a in range(3))


def test_whatever_the_limit_the_prompt_fits_or_is_refused():
    smallest = 0
    for tokens in range(characters(cut_view(None).messages), 0, -37):
        try:
            seen = cut_view(tokens)
        except PromptTooLongError:
            break
        assert characters(seen.messages) <= tokens
        assert seen == cut_view(tokens)
        smallest = tokens
    bare = characters(cut_view(smallest).messages)
    with pytest.raises(
        PromptTooLongError, match=r"problem 'gsm/7': its shortest prompt \(ballot\) has \d+ tokens"
    ):
        cut_view(bare - 200)


class Counting(ScriptedPolicy):
    """One token for each character, and a context of its own."""

    context_tokens = 9000

    def count_tokens(self, messages):
        return characters(messages)


def test_the_budget_is_the_smaller_limit_less_the_reply():
    config = DebateConfig(max_tokens=100, thinking_tokens=20)
    assert context_budget(Counting({}), config).tokens == 8880
    assert context_budget(Counting({}), config.model_copy(update={"context_tokens": 500})).tokens == 380
    assert context_budget(ScriptedPolicy({}), config).tokens is None


def test_a_long_debate_stays_within_the_context_and_counts_its_cuts():
    reply = (
        "<solution>" + "word " * 500 + "\\boxed{4}</solution><evaluation>" + "well " * 300 + "</evaluation>"
    )
    policy = Counting({}, default=reply + "<comparison></comparison>")
    config = DebateConfig(num_rounds=3, history_rounds=-1, max_tokens=1500, thinking_tokens=0)
    debate = asyncio.run(hold_debate(PROBLEM, policy, config, seed=1))
    assert all(characters(request.messages) <= 7500 for request in policy.requests)
    assert [turn.cut > 0 for turn in debate.turns] == [False] * 3 + [True] * 9
    assert all("\\boxed{4}" in request.messages[-1].content for request in policy.requests[3:])


def test_check_fits_passes_what_fits_and_refuses_the_rest_with_id_and_length():
    config = DebateConfig(num_rounds=2, max_tokens=1000)
    check_fits(PROBLEM, ScriptedPolicy({}), config)
    check_fits(PROBLEM, Counting({}), config)
    long = Problem("gsm/8", "word " * 1500, "4")
    with pytest.raises(
        PromptTooLongError, match=r"problem 'gsm/8': .* has \d{5} tokens, but the context has only 8000"
    ):
        check_fits(long, Counting({}), config)
    with pytest.raises(ValueError, match=r"with 10000 reserved for the reply"):
        check_fits(PROBLEM, Counting({}), config.model_copy(update={"max_tokens": 10_000}))


@pytest.mark.parametrize(
    "said",
    [f"<solution>{'x' * 9000}</solution><evaluation>{'y' * 9000}", f"<evaluation>{'y' * 9000}</evaluation>"],
    ids=["long", "unreadable"],
)
def test_what_check_fits_passes_can_be_held_whatever_is_said(said):
    """The barest prompts of a debate are at least as long as the ones it falls back on."""
    policy = Counting({}, default=said)
    for history in (1, -1):
        config = DebateConfig(num_rounds=2, max_tokens=1, history_rounds=history)
        low, high = 1, 9000
        while low < high:  # the smallest context that check_fits passes
            middle = (low + high) // 2
            try:
                check_fits(PROBLEM, policy, config.model_copy(update={"context_tokens": middle}))
                high = middle
            except PromptTooLongError:
                low = middle + 1
        tight = config.model_copy(update={"context_tokens": low})
        for seed in range(5):
            asyncio.run(hold_debate(PROBLEM, policy, tight, seed=seed))
