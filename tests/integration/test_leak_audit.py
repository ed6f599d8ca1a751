"""Every text of a debate carries its own mark; which marks may stand in which prompt."""

import itertools
import re
from random import Random

import pytest
from msgspec.structs import replace

from debate import Completion, DebateConfig, Persona, Problem, run_debates
from debate.prompting.shown import rounds_shown
from debate.types import TurnId

MARK = re.compile(r"\b(?:sol|eva|com|thk|pre)q[a-z]+\b")
SHAPES = list(
    itertools.product(
        (1, 2, 3, 5, 7),  # agents
        (1, 3),  # rounds
        (-1, 0, 1, 2),  # history_rounds
        (False, True),  # judge_own
        ("per_debate", "per_viewer"),
        ("default", "tiny"),
    )
)
FORMS = ("plain", "nested", "thinking", "unclosed", "cut", "none", "escaped")
WHOLE = {"cut": ("pre", "sol"), "none": ("pre", "com", "thk")}
"""Forms without a solution, and what one agent alone sees of them: the reply without its comparisons."""


def name_of(number: int) -> str:
    """Spell a number in letters, so that no mark holds a digit."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def mark(kind: str, debate: str, turn: TurnId) -> str:
    return f"{kind}q{name_of(int(debate[:6]))}z{name_of(turn.agent)}z{name_of(turn.round)}"


def write(form: str, marks: dict[str, str]) -> str:
    """Write a reply in one of the forms models fall into; the comparison is always somewhere in it."""
    sol, eva, com, thk, pre = (marks[kind] for kind in ("sol", "eva", "com", "thk", "pre"))
    parts = {
        "plain": f"{pre} <solution> {sol}</solution><evaluation>{eva}</evaluation>"
        f"<comparison>{com}</comparison>",
        "nested": f"<solution> {sol} <comparison>{com}</comparison><think>{thk}</think></solution>"
        f"<evaluation>{eva} <Comparison >{com}</evaluation><comparison>{com}</comparison>",
        "thinking": f"<think>{thk}</think>{pre}<solution> {sol}</solution><evaluation>{eva}</evaluation>"
        f"<comparison>{com}</comparison>",
        "unclosed": f"<solution> {sol}\n<evaluation>{eva}\n<comparison>{com}",
        "cut": f"<comparison>{com}</comparison>{pre}<solution> {sol}",
        "none": f"{pre} {com} {thk}",
        "escaped": f"&lt;solution&gt; {sol} &lt;comparison&gt;{com}&lt;/comparison&gt;&lt;/solution&gt;"
        f"&lt;evaluation&gt;{eva}&lt;/evaluation&gt;",
    }
    return parts[form]


class Marked:
    """Says marked texts in a form drawn from the seed, and keeps every request."""

    version = 0

    def __init__(self):
        self.requests = []

    async def sample(self, request):
        self.requests.append(request)
        kinds = ("sol", "eva", "com", "thk", "pre")
        text = write(form_of(request), {kind: mark(kind, request.debate, request.turn) for kind in kinds})
        return Completion((), (), (), text, "stop", 0)

    async def update(self, weights, version):
        raise NotImplementedError


class Conversing(Marked):
    """The same in conversations: each request adds one message to those before."""

    async def sample(self, request):
        reply = await super().sample(request)
        return replace(reply, prompt_tokens=(*request.prefix, 1), tokens=(2,), logprobs=(0.0,))

    def count_continuation(self, messages):
        return len(messages)


def form_of(request) -> str:
    return Random(request.seed).choice(FORMS)


def allowed_marks(config: DebateConfig, request, forms: dict) -> set[str]:
    """Return the marks the prompt must show, and no others: solutions and evaluations of the window."""
    expected = set()
    newest = 1 if config.conversation else config.history_rounds
    for round_ in rounds_shown(request.turn.round, newest):
        for agent in range(config.num_agents):
            if config.conversation and agent == request.turn.agent:
                continue  # its own reply stands in the conversation
            turn = TurnId(agent, round_)
            form = forms[request.debate, turn]
            if config.num_agents == 1 and form in WHOLE:
                expected |= {mark(kind, request.debate, turn) for kind in WHOLE[form]}
            elif form not in WHOLE:
                expected.add(mark("sol", request.debate, turn))
                if config.prompts != "tiny":
                    expected.add(mark("eva", request.debate, turn))
    return expected


@pytest.mark.slow
@pytest.mark.parametrize("thinking_tokens", [0, 64])
def test_only_solutions_and_evaluations_of_the_window_reach_a_prompt(thinking_tokens):
    audited = 0
    for number, (agents, rounds, history, own, order, prompts) in enumerate(SHAPES):
        names = [f"PersonaName{name_of(seat)}" for seat in range(agents)]
        ways = [f"wayof{name_of(seat)}x" for seat in range(agents)]
        config = DebateConfig(
            num_agents=agents,
            num_rounds=rounds,
            history_rounds=history,
            judge_own=own,
            order=order,
            prompts=prompts,
            thinking_tokens=thinking_tokens,
            personas=tuple(Persona(n, w) for n, w in zip(names, ways, strict=True)),
        )
        policy = Marked()
        run_debates([Problem("p", "Which one?", "4")] * 2, policy, config, seed=number)
        forms = {(r.debate, r.turn): form_of(r) for r in policy.requests}
        for request in policy.requests:
            audit(config, request, forms, names, ways)
        audited += 2
    assert audited >= 200


@pytest.mark.parametrize("prompts", ["default", "tiny"])
@pytest.mark.parametrize("order", ["per_debate", "per_viewer"])
@pytest.mark.parametrize("own", [False, True])
def test_a_message_of_a_conversation_holds_the_newest_work_of_the_others_alone(prompts, order, own):
    names, ways = ([f"PersonaName{name_of(n)}" for n in range(4)], [f"wayof{name_of(n)}x" for n in range(4)])
    config = DebateConfig(
        num_agents=4,
        num_rounds=3,
        history_rounds=-1,
        conversation=True,
        judge_own=own,
        order=order,
        prompts=prompts,
        personas=tuple(Persona(n, w) for n, w in zip(names, ways, strict=True)),
    )
    policy = Conversing()
    run_debates([Problem("p", "Which one?", "4")] * 6, policy, config, seed=1)
    forms = {(r.debate, r.turn): form_of(r) for r in policy.requests}
    assert set(forms.values()) == set(FORMS)
    for request in policy.requests:
        audit(config, request, forms, names, ways)
        assert [message.role for message in request.messages if request.turn.round] in ([], ["user"])


def audit(config, request, forms, names, ways):
    text = "\n".join(message.content for message in request.messages)
    found = set(MARK.findall(text))
    assert found == allowed_marks(config, request, forms)
    assert not [name for name in names if name in text]
    assert [way for way in ways if way in text] == [ways[request.turn.agent]]
    assert not re.search(r"(?i)\b(?:agent|seat|player|persona|debater)[ _#]*\d", text)


def test_handles_and_order_tell_nothing_about_the_seat():
    """Over many debates each seat is shown first equally often, and letters do not go by seat."""
    policy = Marked()
    config = DebateConfig(num_agents=3, num_rounds=1)
    debates = run_debates([Problem("p", "Which one?", "4")] * 600, policy, config, seed=3)
    first = [debate.turns[-1].shown[0].agent for debate in debates]
    alphabetical = [min(debate.turns[:3], key=lambda turn: turn.handle).id.agent for debate in debates]
    for seats in (first, alphabetical):
        assert all(150 <= seats.count(seat) <= 250 for seat in range(3))  # 200 expected, sd 11.5
