import asyncio
import gc
import inspect
from contextlib import contextmanager
from random import Random

import pytest

from debate import Completion, DebateConfig, Persona, Problem, hold_debate, run_debates
from debate.concurrency import together
from debate.personas import PERSONAS, WIDE_PERSONAS
from debate.policies import ScriptedPolicy
from debate.prompting.seating import seat_debate
from debate.seeds import derive_seed
from debate.types import TurnId

PROBLEM = Problem("p", "What is 2 + 2?", "4")
SILENT = "<solution>4</solution><evaluation>fine</evaluation><comparison></comparison>"


def hold(policy, config=None, *, seed=1, problem=PROBLEM):
    return asyncio.run(hold_debate(problem, policy, config or DebateConfig(), seed=seed))


def labels(config, seed=1):
    return seat_debate(PROBLEM, config, seed).handles


@pytest.mark.parametrize("agents", range(1, 8))
@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_every_agent_speaks_in_every_round(agents, rounds):
    debate = hold(ScriptedPolicy({}, default=SILENT), DebateConfig(num_agents=agents, num_rounds=rounds))
    last = rounds + 1 if agents >= 3 else rounds  # two peers make a ballot
    assert [turn.id for turn in debate.turns] == [TurnId(a, r) for r in range(last) for a in range(agents)]
    assert [turn.ballot for turn in debate.turns] == [turn.id.round == rounds for turn in debate.turns]
    assert len(debate.personas) == agents


def test_two_agents_vote_only_when_own_work_counts():
    policy = ScriptedPolicy({}, default=SILENT)
    assert max(t.id.round for t in hold(policy, DebateConfig(num_agents=2, num_rounds=1)).turns) == 0
    with_own = hold(policy, DebateConfig(num_agents=2, num_rounds=1, judge_own=True))
    assert [len(turn.compared) for turn in with_own.turns] == [0, 0, 2, 2]


def test_shown_and_compared_are_in_the_order_of_the_prompt():
    config = DebateConfig(num_agents=4, num_rounds=2, history_rounds=-1)
    debate = hold(ScriptedPolicy({}, default=SILENT), config)
    order = seat_debate(PROBLEM, config, 1).orders[0]
    turn = debate.turn(TurnId(2, 2))
    assert turn.shown == tuple(TurnId(seat, round_) for round_ in (0, 1) for seat in order)
    assert turn.compared == tuple(TurnId(seat, 1) for seat in order if seat != 2)


def test_requests_carry_temperature_seed_stop_and_budget():
    policy = ScriptedPolicy({}, default=SILENT)
    sizes = {"num_agents": 6, "num_rounds": 1, "max_tokens": 77, "thinking_tokens": 90}
    hold(policy, DebateConfig(**sizes, stop=("\nProblem:",)), seed=9)
    assert [r.temperature for r in policy.requests[:6]] == [0.6, 1.0, 0.9, 1.0, 0.8, 0.6]
    assert {(r.max_tokens, r.thinking_tokens) for r in policy.requests} == {(77, 90)}
    assert {r.stop for r in policy.requests[:6]} == {("\nProblem:", "</solution>")}
    assert {r.stop for r in policy.requests[6:]} == {("\nProblem:", "</comparison>")}
    assert [r.seed for r in policy.requests] == [
        derive_seed(9, "sample", r, a) for r in (0, 1) for a in range(6)
    ]
    assert len({r.seed for r in policy.requests}) == 12


def test_temperatures_come_from_the_personas_in_use():
    policy = ScriptedPolicy({}, default=SILENT)
    debate = hold(policy, DebateConfig(num_agents=5, num_rounds=1, personas="wide"))
    assert debate.personas == WIDE_PERSONAS
    assert [r.temperature for r in policy.requests[:5]] == [0.6, 1.2, 0.9, 1.1, 1.5]
    own = (Persona("A", "x", 0.1), Persona("B", "y", 0.2))
    debate = hold(policy, DebateConfig(num_agents=3, num_rounds=1, personas=own))
    assert [p.name for p in debate.personas] == ["A", "B", "A"]
    assert hold(policy, DebateConfig(num_agents=3)).personas == PERSONAS[:3]


def test_a_vote_goes_to_the_newest_shown_turn_of_the_label():
    """The vote of round 2 is about round 1, that of the ballot about the last round."""
    config = DebateConfig(num_rounds=2, history_rounds=-1)
    names = labels(config)
    line = f"<comparison>{names[1]} > {names[2].lower()}: clear</comparison>"
    table = {(0, r): f"<solution>4</solution><evaluation>e</evaluation>{line}" for r in range(3)}
    debate = hold(ScriptedPolicy(table, default=SILENT), config)
    assert [(v.judge, v.left, v.right, v.outcome) for v in debate.votes] == [
        (TurnId(0, 1), TurnId(1, 0), TurnId(2, 0), "left"),
        (TurnId(0, 2), TurnId(1, 1), TurnId(2, 1), "left"),
    ]
    text = debate.turn(TurnId(0, 1)).completion.text
    assert debate.votes[0].span.of(text) == f"{names[1]} > {names[2].lower()}: clear"


def test_the_same_seed_gives_the_same_debate_and_another_seed_another():
    def say(request):
        return f"<solution>{Random(request.seed).random()}</solution>"

    first, again, other = (hold(ScriptedPolicy(say), seed=seed) for seed in (4, 4, 5))
    assert first == again
    assert first.turns != other.turns


def test_many_debates_come_back_in_order_each_with_its_own_seed():
    problems = [Problem(name, f"Question {name}?", "4") for name in ("a", "a", "b", "a")]
    policy = ScriptedPolicy({}, default=SILENT)
    debates = run_debates(problems, policy, DebateConfig(num_rounds=1), seed=7)
    assert [debate.problem.id for debate in debates] == ["a", "a", "b", "a"]
    assert [d.seed for d in debates] == [derive_seed(7, "debate", i, p.id) for i, p in enumerate(problems)]
    assert len({debate.turns[0].handle for debate in debates}) > 1
    assert {r.debate for r in policy.requests} == {"000000:a", "000001:a", "000002:b", "000003:a"}
    assert run_debates([], policy, DebateConfig(), seed=7) == []


class Slow:
    """Answers after random delays, drawn apart from the requests' seeds."""

    version = 3

    def __init__(self, seed):
        self.rng = Random(seed)

    async def sample(self, request):
        await asyncio.sleep(self.rng.random() / 500)
        text = f"<solution>{Random(request.seed).random()}</solution>"
        return Completion((), (), (), text, "stop", self.version)

    async def update(self, weights, version):
        raise NotImplementedError


@pytest.mark.parametrize("max_live", [None, 1, 2, 50])
def test_results_do_not_depend_on_timing_or_on_how_many_are_open(max_live):
    problems, config = [PROBLEM] * 6, DebateConfig(num_rounds=2)
    expected = run_debates(problems, Slow(1), config, seed=3)
    assert run_debates(problems, Slow(2), config, seed=3, max_live=max_live) == expected
    assert expected[0].policy_version == 3


def test_max_live_bounds_the_open_debates():
    open_now, most = set(), 0

    class Watching(Slow):
        async def sample(self, request):
            nonlocal most
            open_now.add(request.debate)
            most = max(most, len(open_now))
            reply = await super().sample(request)
            if request.turn.round == 1:
                open_now.discard(request.debate)
            return reply

    run_debates(
        [PROBLEM] * 7, Watching(1), DebateConfig(num_rounds=2, final_ballot=False), seed=3, max_live=2
    )
    assert most == 2
    with pytest.raises(ValueError, match="max_live must be at least 1 or None, got 0"):
        run_debates([PROBLEM], Slow(1), DebateConfig(), seed=3, max_live=0)


def test_an_exception_is_raised_as_it_is_and_the_others_are_cancelled():
    ended = []

    class Failing(Slow):
        async def sample(self, request):
            if request.debate.startswith("000001") and request.turn == TurnId(2, 1):
                raise ConnectionError("the engine is gone")
            try:
                if request.debate.startswith("000000"):
                    await asyncio.sleep(60)
            finally:
                ended.append(request.debate)
            return Completion((), (), (), SILENT, "stop", 0)

    with pytest.raises(ConnectionError, match="the engine is gone"):
        run_debates([PROBLEM] * 3, Failing(1), DebateConfig(num_rounds=2), seed=3)
    assert ended.count("000000:p") == 3
    with pytest.raises(ConnectionError):
        asyncio.run(hold_debate(PROBLEM, Failing(1), DebateConfig(), seed=3, name="000001:p"))


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("where", ["sample", "seat"])
def test_a_stop_within_a_task_ends_the_others_and_is_told_once(stop, where, caplog, monkeypatch):
    ended = []

    class Stopping(Slow):
        async def sample(self, request):
            if where == "sample" and request.debate.startswith("000001"):
                raise stop
            try:
                await asyncio.sleep(60 if request.debate.startswith("000000") else 0)
            finally:
                ended.append(request.debate)
            return Completion((), (), (), SILENT, "stop", 0)

    def reading(turn, handles):
        raise stop

    if where == "seat":  # in what the debate does with a reply
        monkeypatch.setattr("debate.hold.votes_of", reading)
    with pytest.raises(stop):
        run_debates([PROBLEM] * 3, Stopping(1), DebateConfig(num_rounds=2), seed=3)
    gc.collect()
    assert ended.count("000000:p") == 3
    assert caplog.messages == []  # asyncio logs a task's exception that nobody took


def test_debates_that_were_held_are_not_held_again_and_the_others_are_as_they_would_be():
    class Counting(Slow):
        def __init__(self):
            super().__init__(1)
            self.asked = set()

        async def sample(self, request):
            self.asked.add(request.debate)
            return Completion((), (), (), f"<solution>{request.seed}</solution>", "stop", 0)

    told = {}
    whole = run_debates(
        [PROBLEM] * 4, Counting(), DebateConfig(num_rounds=1), seed=3, on_debate=told.__setitem__
    )
    assert [told[place] for place in range(4)] == whole
    policy = Counting()
    again = run_debates(
        [PROBLEM] * 4, policy, DebateConfig(num_rounds=1), seed=3, held={0: whole[0], 2: whole[2]}, max_live=1
    )
    assert again == whole
    assert policy.asked == {"000001:p", "000003:p"}


class Seated(Slow):
    """Counts seats, and notes how many were taken at the first request and at each later one."""

    def __init__(self):
        super().__init__(1)
        self.taken = 0
        self.seen = []

    @contextmanager
    def seat(self):
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1

    async def sample(self, request):
        self.seen.append((request.debate, self.taken))
        return await super().sample(request)


@pytest.mark.parametrize(("max_live", "seats"), [(None, 5), (2, 2)])
def test_all_seats_are_taken_before_the_first_request_and_left_in_the_end(max_live, seats):
    policy = Seated()
    run_debates([PROBLEM] * 5, policy, DebateConfig(num_rounds=1), seed=1, max_live=max_live)
    assert policy.seen[0][1] == seats
    assert policy.taken == 0
    hold(policy)
    assert policy.seen[-1][1] == 1
    assert policy.taken == 0


def test_seats_are_left_when_the_policy_fails():
    class Broken(Seated):
        async def sample(self, request):
            raise OSError("no")

    policy = Broken()
    with pytest.raises(OSError, match="no"):
        run_debates([PROBLEM] * 3, policy, DebateConfig(), seed=1)
    assert policy.taken == 0


class OpensThinking(ScriptedPolicy):
    """A policy whose template begins each reply with a think block."""

    def opens_thinking(self, messages):
        return True


@pytest.mark.parametrize(("end", "answer"), [("", None), ("</think><solution>\\boxed{5}</solution>", "5")])
def test_thinking_that_the_template_opened_stays_private(end, answer):
    draft = "Say <solution>my secret draft \\boxed{4}</solution>, but no. "
    policy = OpensThinking(lambda request: draft + end)
    [debate] = run_debates([PROBLEM], policy, DebateConfig(num_rounds=2, thinking_tokens=9), seed=0)
    assert {turn.parsed.answer for turn in debate.turns if not turn.ballot} == {answer}
    assert not any("secret" in m.content for request in policy.requests for m in request.messages)


def test_calls_that_are_cancelled_before_they_begin_are_closed():
    async def call() -> None:
        raise AssertionError("it never begins")

    calls = [call(), call()]

    async def cut_off() -> None:
        task = asyncio.create_task(together(calls))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cut_off())
    assert [inspect.getcoroutinestate(one) for one in calls] == ["CORO_CLOSED"] * 2
    gc.collect()
