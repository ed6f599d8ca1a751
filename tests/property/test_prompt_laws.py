"""The prompts of a stored debate, made again, are those that the policy was given."""

from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace as changed

from debate import DebateConfig, Persona, Problem, run_debates
from debate.policies import ScriptedPolicy
from debate.prompting.fitting import PromptTooLongError
from debate.prompting.rebuilding import PromptUnknownError, held_debate
from debate.types import SUMMARIZER, TurnId
from transcripts import Record
from transcripts.codec import from_line, to_line

PIECES = (
    "<think>secret</think>",
    "<solution>so 2 + 2 < 5, \\boxed{4}</solution>",
    "<solution>" + "a long way to it, " * 40 + "\\boxed{4}</solution>",
    "<solution>" + "long and without an answer. " * 30 + "</solution>",
    "<solution>cut off",
    "<evaluation>K7 is &lt;right>\u202e\r\nand so on</evaluation>",
    "<evaluation>" + "words " * 150 + "</evaluation>",
    "<comparison>\nK7 > Q2\n</comparison>",
    "beside the sections",
)
REPLIES = st.lists(st.sampled_from(PIECES), max_size=4).map(" ".join)
CONFIGS = st.builds(
    DebateConfig,
    num_agents=st.integers(1, 4),
    num_rounds=st.integers(1, 3),
    final_ballot=st.booleans(),
    history_rounds=st.integers(-1, 2),
    judge_own=st.booleans(),
    order=st.sampled_from(["per_debate", "per_viewer"]),
    max_tokens=st.just(10),
    prompts=st.sampled_from(["default", "tiny"]),
    personas=st.sampled_from([None, "wide", (Persona("p", "careful"),)]),
    summary=st.sampled_from([{}, {"enabled": True, "max_tokens": 20}]),
)
KINDS = st.sampled_from(["expression", "choice", "instructions", "open"])


class Small(ScriptedPolicy):
    """Speaks at random from a few replies; its context is this many characters."""

    def __init__(self, replies, room):
        random = Random(7)
        super().__init__(lambda request: random.choice(replies) if replies else "")
        self.context_tokens = room

    def count_tokens(self, messages):
        return sum(len(message.content) for message in messages)

    async def sample(self, request):
        return await super().sample(replace(request, stop=()))


def held(config, replies, room, kind="expression", seed=3):
    problem = Problem("p", "What is 2 + 2 < 5?", "4", kind=kind, choices=("4", "5") * (kind == "choice"))
    policy = Small(replies, room)
    [debate] = run_debates([problem], policy, config, seed=seed)
    return from_line(to_line(Record(debate, 0, "p"))).debate, policy.requests


@settings(max_examples=60)
@given(CONFIGS, st.lists(REPLIES, max_size=5), st.none() | st.integers(1500, 9500), KINDS, st.integers(0, 99))
def test_a_rebuilt_prompt_is_the_one_that_was_read(config, replies, room, kind, seed):
    try:
        debate, requests = held(config, replies, room, kind, seed)
    except PromptTooLongError:
        assume(False)
    again = held_debate(debate)
    assert len(requests) == len(debate.turns) + len(debate.summaries)
    for request in requests:
        assert again.prompt(request.turn).messages == request.messages


SIZE = DebateConfig(num_rounds=3, history_rounds=-1, max_tokens=10)


ODD = st.integers(-3, 70)
IDS = st.lists(st.builds(TurnId, ODD, ODD), max_size=4).map(tuple)
FIELDS = st.fixed_dictionaries({}, optional={"shown": IDS, "compared": IDS, "cut": ODD, "cut_length": ODD})
SUMMED = DebateConfig(num_rounds=2, max_tokens=10, summary={"enabled": True, "max_tokens": 20})


@given(FIELDS, FIELDS, st.sampled_from([None, 0, 1, 2, 9]), st.sampled_from([SIZE, SUMMED]))
def test_a_debate_of_anybodys_making_is_told_or_refused(of_turns, of_summaries, round_, config):
    debate, _ = held(config, ["<solution>4</solution>"], None)
    fields = {name: value for name, value in of_summaries.items() if name != "compared"}
    fields |= {} if round_ is None else {"round": round_}
    summaries = tuple(changed(one, **fields) for one in debate.summaries)
    turns = tuple(changed(turn, **of_turns) for turn in debate.turns)
    again = held_debate(changed(debate, turns=turns, summaries=summaries))
    readers = [turn.id for turn in turns] + [TurnId(SUMMARIZER, one.round) for one in summaries]
    for turn in (*readers, TurnId(9, 9)):
        with suppress(PromptUnknownError):
            assert again.prompt(turn).messages


LONG = ["<solution>" + "a long way to it, " * 40 + "\\boxed{4}</solution>"]


def how_cut(turn):
    """Return how many rounds are shown, and how the texts are cut."""
    if turn.cut_length is UNSET:
        return len({shown.round for shown in turn.shown}), "whole"
    return len({shown.round for shown in turn.shown}), "short" if turn.cut_length >= 0 else "marks"


def test_the_law_meets_every_kind_of_cut():
    kinds = set()
    for room in (None, 8000, 6000, 4000, 2830):
        debate, requests = held(SIZE, LONG, room)
        kinds |= {how_cut(turn) for turn in debate.turns if turn.id.round > 1}
        again = held_debate(debate)
        assert all(again.prompt(request.turn).messages == request.messages for request in requests)
    assert kinds >= {(3, "whole"), (2, "whole"), (1, "whole"), (1, "short"), (1, "marks")}


def test_what_the_record_does_not_tell_is_said():
    debate, _ = held(SIZE, LONG, 4000)
    turn = TurnId(0, 3)
    position = next(index for index, one in enumerate(debate.turns) if one.id == turn)

    def other(**fields):
        turns = list(debate.turns)
        turns[position] = changed(turns[position], **fields)
        return changed(debate, turns=tuple(turns))

    for wrong, words in (
        (other(cut_length=UNSET), "their lengths are not stored"),
        (other(shown=debate.turn(turn).shown[1:]), "the prompt showed other turns"),
        (changed(debate, turns=debate.turns[:2]), "no such turn"),
        (changed(debate, turns=debate.turns[3:]), "some turns that the prompt showed are not stored"),
        (changed(debate, seed=debate.seed + 1), "handles"),
        (other(id=TurnId(7, 3)), "handles"),
        (changed(debate, personas=debate.personas[:1]), "persona"),
    ):
        with pytest.raises(PromptUnknownError, match=words):
            held_debate(wrong).prompt(turn)
    with pytest.raises(PromptUnknownError, match="no such turn"):
        held_debate(debate).prompt(TurnId(SUMMARIZER, 1))


def test_personas_that_code_names_are_not_imported():
    debate, requests = held(SIZE, ["<solution>4</solution>"], None)
    protocol = debate.protocol.model_copy(update={"personas": "no_such_module:NAMES"})
    again = held_debate(changed(debate, protocol=protocol))
    assert again.prompt(TurnId(1, 0)).messages == requests[1].messages
