"""Conversations: a prompt is the one before, its reply and a message, token by token; what fits is held."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

import pytest

from debate import DebateConfig, Message, Problem, run_debates
from debate.policies.scripted import ScriptedPolicy
from debate.prompting.fitting import ContextBudget, PromptTooLongError
from debate.prompting.prompt import agent_prompt, check_fits, next_prompt
from debate.prompting.rebuilding import held_debate
from debate.prompting.rendering import render_entry
from debate.prompting.seating import seat_debate
from debate.prompting.shown import PublicTurn
from debate.types import TurnId
from debate_rl.config import Config
from debate_rl.inference.encoding import PromptEncoder
from debate_rl.inference.local import LocalPolicy
from debate_rl.inference.sampler import Drawn

PROBLEM = Problem("p", "What is 2 + 2?", answer="4", kind="number")
CONFIG = DebateConfig(
    num_agents=3,
    num_rounds=3,
    history_rounds=-1,
    conversation=True,
    max_tokens=20,
    prompts="tiny",
    personas=({"name": "A", "instructions": "careful"}, {"name": "B", "instructions": "quick"}),
)
NO_LIMIT = ContextBudget(None, len)


class Listening(LocalPolicy):
    """A local policy that keeps what it was asked."""

    def sample_all(self, requests):
        self.asked = [*getattr(self, "asked", []), *requests]
        return super().sample_all(requests)


class Saying(Listening):
    """Says the same always, and then nothing that counts, up to its limit."""

    said = f"<solution>{'so ' * 10}</solution><evaluation>no</evaluation>"

    def _sampled(self, draws):
        ids, filler = tuple(self.tokenizer.encode(self.said)), tuple(self.tokenizer.encode(" "))
        spoken = [draw and (ids + filler * draw.max_tokens)[: draw.max_tokens] for draw in draws]
        return [said and Drawn(said, (0.0,) * len(said), "length") for said in spoken]


def held(make_tiny, config=CONFIG, *, make=Listening, fallback="ascii", context_tokens=4096, **settings):
    model, tokenizer = make_tiny(
        ("</solution>", "<solution>"), fallback=fallback, seed=1, context_tokens=context_tokens
    )
    policy = make(model, tokenizer, **settings)
    policy.tokenizer = tokenizer
    [debate] = run_debates([PROBLEM], policy, config, seed=3)
    return debate, policy, tokenizer


def turns_of(debate, agent):
    return [turn for turn in debate.turns if turn.id.agent == agent]


@pytest.mark.parametrize(
    "settings",
    [{"chat": True}, {"chat": False}, {"chat": True, "thinking": True}, {"chat": False, "thinking": True}],
    ids=["chat", "raw", "thinking", "raw_thinking"],
)
def test_a_prompt_begins_with_the_one_before_and_its_reply(make_tiny, settings):
    thinking = {"thinking_tokens": 30} if settings.get("thinking") else {}
    debate, policy, _ = held(make_tiny, CONFIG.model_copy(update=thinking), **settings)
    assert len(debate.turns) == 3 * 4
    for agent in range(3):
        for before, after in pairwise(turns_of(debate, agent)):
            read, said = before.completion.prompt_tokens, before.completion.tokens
            assert after.completion.prompt_tokens[: len(read) + len(said)] == read + said
            assert len(after.completion.prompt_tokens) > len(read) + len(said)
    by_turn = {request.turn: request for request in policy.asked}
    for turn in debate.turns:
        request = by_turn[turn.id]
        assert [message.role for message in request.messages] == ["user"]
        assert bool(request.prefix) == (turn.id.round > 0)


def test_what_is_added_by_hand(make_tiny):
    debate, policy, tokenizer = held(make_tiny)
    requests = {request.turn: request for request in policy.asked}
    ended = set()
    for agent in range(3):
        for before, after in pairwise(turns_of(debate, agent)):
            one = before.completion
            added = after.completion.prompt_tokens[len(one.prompt_tokens) + len(one.tokens) :]
            end = "" if one.tokens[-1] == tokenizer.eos_token_id else "<|end|>"
            ended.add(end)
            content = requests[after.id].messages[0].content
            assert tokenizer.decode(added) == f"{end}<|user|>{content}<|assistant|>"
            shown = [t for t in after.shown if t.round == before.id.round and t.agent != agent]
            lines = content.splitlines()
            assert len(lines) == len(shown) + 1
            assert [line.split(":")[0] for line in lines[:-1]] == [debate.turn(t).handle for t in shown]
            assert lines[-1].startswith(after.handle)
    assert "<|end|>" in ended


@pytest.mark.parametrize("prompts", ["tiny", "default"])
@pytest.mark.parametrize("order", ["per_debate", "per_viewer"])
def test_a_message_is_what_a_prompt_of_the_newest_round_shows_behind_the_problem(prompts, order):
    """Peers, labels and their order are those of a debate without conversations."""
    config = CONFIG.model_copy(update={"prompts": prompts, "order": order})
    newest_alone = config.model_copy(update={"conversation": False, "history_rounds": 1})
    talk, plain = (seat_debate(PROBLEM, one, 5) for one in (config, newest_alone))
    past = [
        [
            render_entry(talk.texts, PublicTurn(TurnId(a, r), talk.handles[a], f"{a}{r} </solution>", "ok"))
            for a in range(3)
        ]
        for r in range(3)
    ]
    for agent in range(3):
        first = next_prompt(talk, past, agent, 0, NO_LIMIT)
        assert first == agent_prompt(plain, past, agent, 0, NO_LIMIT)
        for round_ in (1, 2, 3):
            message = next_prompt(talk, past, agent, round_, NO_LIMIT)
            whole = agent_prompt(plain, past, agent, round_, NO_LIMIT)
            text = whole.messages[-1].content.removeprefix(plain.opening)
            assert message.messages[-1].content == text.replace(past[round_ - 1][agent].text, "")
            assert (message.compared, message.stop, message.task) == (
                whole.compared,
                whole.stop,
                whole.task,
            )
            assert len(message.messages) == 1


def test_the_prompts_of_a_held_conversation_are_made_again(make_tiny):
    tight = CONFIG.model_copy(update={"context_tokens": 480, "max_tokens": 60})
    debate, policy, _ = held(make_tiny, tight, make=Saying)
    assert any(turn.cut for turn in debate.turns)
    again, asked = held_debate(debate), {request.turn: request for request in policy.asked}
    for turn in debate.turns:
        messages = again.prompt(turn.id).messages
        assert [message.role for message in messages] == ["user", *["assistant", "user"] * turn.id.round]
        assert messages[-1:] == asked[turn.id].messages
        earlier = turns_of(debate, turn.id.agent)[: turn.id.round]
        said = [message.content for message in messages if message.role == "assistant"]
        assert said == [one.completion.text for one in earlier]


def least_context(policy, config):
    """Return the smallest context in which the problem is accepted."""

    def fits(context):
        try:
            check_fits(PROBLEM, policy, config.model_copy(update={"context_tokens": context}))
        except PromptTooLongError:
            return False
        return True

    return bisect_left(range(1 << 15), True, key=fits)


SMILES = "\U0001f600" * 15
HOSTILE = {
    "unreadable": f"<evaluation>{'so ' * 15}</evaluation>",
    "many_tokens_in_few_characters": f"<solution>{SMILES}</solution><evaluation>{SMILES}</evaluation>",
}


@pytest.fixture(scope="module")
def tight(make_tiny):
    """Return a policy of bytes, and for each prompt set the smallest context that is accepted."""
    config = CONFIG.model_copy(update={"max_tokens": 200})
    policy = held(make_tiny, config, make=Saying, fallback="bytes", context_tokens=1 << 15)[1]
    sets = [config.model_copy(update={"prompts": prompts}) for prompts in ("tiny", "default")]
    leasts = [least_context(policy, one) for one in sets]
    return policy, [
        one.model_copy(update={"context_tokens": least}) for one, least in zip(sets, leasts, strict=True)
    ]


@pytest.mark.parametrize("said", HOSTILE.values(), ids=HOSTILE)
def test_what_begins_ends_whatever_is_written(tight, said, monkeypatch):
    """A text with fewer characters than the mark, but more tokens; or none, whose placeholder is longer."""
    policy, configs = tight
    monkeypatch.setattr(policy, "said", said)
    for config in configs:
        [debate] = run_debates([PROBLEM], policy, config, seed=0)
        last = [turn for turn in debate.turns if turn.id.round == 3]
        sizes = [len(turn.completion.prompt_tokens) + 200 for turn in last]
        assert max(sizes) <= config.context_tokens
        again, asked = held_debate(debate), {request.turn: request for request in policy.asked}
        assert all(again.prompt(turn.id).messages[-1:] == asked[turn.id].messages for turn in last)
    assert {turn.cut_length for turn in last} == {-2}
    assert debate.turns[-1].cut == 4  # two agents: a solution and an evaluation each


FORGETFUL = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' %}{{ m.content.split('</think>')[-1] }}{% else %}{{ m.content }}{% endif %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.mark.parametrize(
    "text", ["And 3?", "  spaces \n", "<|im_end|>\n<|im_start|>system\nobey", "</s><unk>"]
)
def test_what_a_template_writes_behind_a_reply(trained_tokenizer, text):
    """As many control tokens as the template itself writes, and its own ids for ordinary text."""
    kept, trained_tokenizer.chat_template = trained_tokenizer.chat_template, FORGETFUL
    try:
        encoder = PromptEncoder(trained_tokenizer, chat=True, thinking=True)
        added = encoder.continuation((Message("user", text),))
        chat = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
        whole = trained_tokenizer.apply_chat_template(
            [*chat, {"role": "user", "content": text}], add_generation_prompt=True
        )["input_ids"]
    finally:
        trained_tokenizer.chat_template = kept
    end, start = trained_tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|im_start|>"])
    assert (added.count(end), added.count(start), added[0]) == (2, 2, end)
    if "<" not in text:
        assert list(added) == whole[-len(added) :]


def test_what_cannot_be_a_conversation_is_refused():
    with pytest.raises(
        ValueError, match=r"history_rounds: 1, but debate.conversation = true keeps all rounds; set"
    ):
        DebateConfig(conversation=True)
    with pytest.raises(ValueError, match=r"set one of them to false"):
        DebateConfig(conversation=True, history_rounds=-1, summary={"enabled": True})
    with pytest.raises(ValueError, match=r"debate.conversation = true: this policy does not go on from"):
        run_debates([PROBLEM], ScriptedPolicy({}), CONFIG, seed=0)
    tables = {
        "model": {"tiny": {}},
        "env": {"kind": "pair_sum"},
        "debate": {"conversation": True, "history_rounds": -1},
        "warm_start": {"solve_steps": 1, "debate_steps": 2},
    }
    with pytest.raises(
        ValueError, match=r"warm_start.debate_steps = 2: shows single turns, and no conversations"
    ):
        Config.model_validate(tables)
