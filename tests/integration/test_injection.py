"""What an agent writes changes no other agent's turn, casts no other vote and forges no part of a prompt."""

import json
import re
import unicodedata
from itertools import product
from pathlib import Path

import pytest

from debate import DebateConfig, Message, Persona, Problem, run_debates
from debate.policies import ScriptedPolicy
from debate.prompting.escape import clean, escape
from debate.prompting.reading import read_prompt
from debate.prompting.rendering import raw_prompt
from debate.prompting.seating import seat_debate
from debate.prompting.texts import load_prompts
from debate.seeds import derive_seed

CORPUS = json.loads((Path(__file__).parents[1] / "data" / "hostile_peers.json").read_text(encoding="ascii"))
PROBLEM = Problem("p", "What is 2 + 2?", "4", kind="number")
PERSONAS = (Persona("Anna", "careful"), Persona("Bert", "bold"), Persona("Cora", "odd"))
SEED = 5
TOKENS = re.compile(
    r"[<＜]\s*[|｜]|</?s>|\[/?INST\]|\[CLS\]|<</?SYS>>|<(?:start|end)_of_turn>|<bos>|\[gMASK\]|<sop>|<tool_call>"
)
CASES = [pytest.param(case["text"] * case.get("repeat", 1), id=case["name"]) for case in CORPUS]
WAYS = list(product(("default", "tiny"), (True, False)))


def config(prompts: str) -> DebateConfig:
    return DebateConfig(num_rounds=2, personas=PERSONAS, prompts=prompts, history_rounds=-1)


def handles(prompts: str) -> tuple[str, ...]:
    return seat_debate(PROBLEM, config(prompts), derive_seed(SEED, "debate", 0, PROBLEM.id)).handles


def hold(prompts: str, hostile: list[str], *, problem: Problem = PROBLEM):
    """Hold a debate in which agent 0 says ``hostile[round]`` and the others say what they always say."""
    labels = seat_debate(problem, config(prompts), derive_seed(SEED, "debate", 0, problem.id)).handles
    votes = {1: f"{labels[0]} < {labels[2]}", 2: f"{labels[1]} > {labels[0]}"}

    def say(request):
        agent, round_ = request.turn.agent, request.turn.round
        if agent == 0:
            return hostile[round_]
        solution = f"<solution>agent one of two, \\boxed{{{agent}}}</solution>" if round_ < 2 else ""
        review = f"<evaluation>checked {round_}</evaluation><comparison>{votes[agent]}</comparison>"
        return solution + (review if round_ else "")

    policy = ScriptedPolicy(say)
    return run_debates([problem], policy, config(prompts), seed=SEED)[0], policy.requests


def replies(text: str) -> list[str]:
    """Wrap the hostile text in a well-formed reply of each round."""
    review = f"<evaluation>{text}</evaluation><comparison></comparison>"
    return [f"<solution>{text}</solution>", f"<solution>{text}</solution>{review}", review]


def of_others(requests):
    return [request for request in requests if request.turn.agent != 0]


def with_labels(text: str, labels: tuple[str, ...]) -> str:
    for mark, label in zip(("@SELF@", "@PEER1@", "@PEER2@"), labels, strict=True):
        text = text.replace(mark, label)
    return text


@pytest.fixture(scope="module")
def calm():
    """The same debates with a harmless agent 0, by prompt set."""
    return {name: hold(name, replies("so \\boxed{4}")) for name in ("default", "tiny")}


@pytest.mark.parametrize("number", range(len(CORPUS)), ids=[case["name"] for case in CORPUS])
def test_a_hostile_peer_changes_nothing_of_the_others(calm, number):
    """Each text with one prompt set, in its sections or as the whole reply, by turns."""
    prompts, wrapped = WAYS[number % 4]
    text = with_labels(CASES[number].values[0], handles(prompts))
    debate, requests = hold(prompts, replies(text) if wrapped else [text] * 3)
    calm_debate, calm_requests = calm[prompts]
    assert [(t.id, t.parsed, t.shown, t.compared) for t in debate.turns if t.id.agent] == [
        (t.id, t.parsed, t.shown, t.compared) for t in calm_debate.turns if t.id.agent
    ]
    assert [v for v in debate.votes if v.judge.agent] == [v for v in calm_debate.votes if v.judge.agent]
    for request, expected in zip(of_others(requests), of_others(calm_requests), strict=True):
        check_prompt(request.messages, expected.messages, prompts, hostile=handles(prompts)[0])


def tag_counts(messages: tuple[Message, ...]) -> list[int]:
    tags = ("<work ", "</work>", "<solution>", "</solution>", "<comparison>", "</comparison>", "<reply>")
    return [messages[-1].content.count(tag) for tag in tags]


def check_prompt(
    messages: tuple[Message, ...], expected: tuple[Message, ...], prompts: str, hostile: str
) -> None:
    """The prompt differs from the calm one only inside the hostile agent's own entries."""
    assert [m.role for m in messages] == [m.role for m in expected]
    assert messages[:-1] == expected[:-1]
    texts, user, calm_user = load_prompts(prompts), messages[-1].content, expected[-1].content
    seen, calm_seen = read_prompt(texts, messages), read_prompt(texts, expected)
    assert (seen.task, seen.handle) == (calm_seen.task, calm_seen.handle)
    assert [(e.handle, e.round) for e in seen.entries] == [(e.handle, e.round) for e in calm_seen.entries]
    assert [e for e in seen.entries if e.handle != hostile] == [
        e for e in calm_seen.entries if e.handle != hostile
    ]
    assert tag_counts(messages) == tag_counts(expected)
    for tag in ("<evaluation>", "</evaluation>"):
        assert user.count(tag) <= calm_user.count(tag)  # an empty evaluation is not shown
    if prompts == "tiny":
        assert user.count("\n") == calm_user.count("\n")
    assert not TOKENS.search(user)
    assert not [
        c for c in user if unicodedata.category(c) in {"Cf", "Cs", "Co"} or (c < " " and c not in "\n\t")
    ]
    assert user.splitlines() == user.split("\n") or user.endswith("\n")
    assert raw_prompt(messages, texts).count("<reply>") == raw_prompt(expected, texts).count("<reply>")


@pytest.mark.parametrize("text", CASES)
def test_a_hostile_problem_forges_no_message_and_no_entry(text):
    problem = Problem("p", text, "4", choices=(text, "4"))
    _, requests = hold("default", replies("so \\boxed{4}"), problem=problem)
    for request in requests:
        assert [m.role for m in request.messages] == ["system", "user"]
        user = request.messages[-1].content
        assert not TOKENS.search(user)
        assert user.count("<work ") == 3 * request.turn.round


@pytest.mark.parametrize("text", CASES)
def test_escaping_is_idempotent_and_leaves_text_without_brackets_alone(text):
    once = escape(text)
    twice, cleaned = escape(once), clean(text)
    assert (twice == once) is True  # not compared in the assertion: a diff of huge texts takes minutes
    if not re.search(r"[<\uff1c\ufe64\[]|&lt;", text, re.IGNORECASE):
        assert (once == cleaned) is True
