import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from debate import DebateConfig, Problem, hold_debate
from debate.compression import TRIES
from debate.config import CompressionConfig
from debate.parsing import last_boxed
from debate.policies import ScriptedPolicy
from debate.prompting.rebuilding import held_debate
from debate.types import COMPRESSOR, TurnId
from debate_rl.metrics.debates import compression_metrics
from transcripts import Record
from transcripts.codec import from_line, to_line
from transcripts.index.facts import facts_of
from transcripts.record import check_record

PROBLEM = Problem("p", "What is 2 + 2?", "4")
CONFIG = DebateConfig(num_agents=3, num_rounds=2, compress=CompressionConfig(over=60, max_tokens=60))
LONG = "step by step, " * 20 + "so \\boxed{4}"
SHORT = "It is \\boxed{4}."


class Debaters(ScriptedPolicy):
    """Agent 0 writes a long solution in round 0; compressions are answered one after the other."""

    def __init__(self, *shorter, long=LONG, tokens=True):
        self.shorter, self.long = list(shorter), long
        super().__init__(self.say, tokens=tokens)

    def say(self, request):
        agent, round_ = request.turn
        if agent <= COMPRESSOR:
            return self.shorter.pop(0)
        solution = self.long if (agent, round_) == (0, 0) else SHORT
        return f"<solution>{solution}</solution><evaluation>e</evaluation><comparison></comparison>"


def hold(policy, config=CONFIG, problem=PROBLEM, **options):
    return asyncio.run(hold_debate(problem, policy, config, seed=3, **options))


def asked(policy):
    return [request for request in policy.requests if request.turn.agent <= COMPRESSOR]


def shown(debate):
    """What agent 1 reads of the long solution in round 1."""
    return held_debate(debate).prompt(TurnId(1, 1)).messages[-1].content


def test_a_long_solution_is_read_as_the_model_shortened_it_and_short_ones_as_they_are():
    policy = Debaters("By steps: \\boxed{4}")
    debate = hold(policy)
    [one] = debate.compressions
    assert (one.turn, one.text, one.failed) == (TurnId(0, 0), "By steps: \\boxed{4}", False)
    assert [reply.text for reply in one.completions] == ["By steps: \\boxed{4}"]
    assert one.completions[0].tokens == ()  # nobody learns from it
    assert one.completions[0].token_count == 20  # 19 characters and the end
    assert debate.turn(TurnId(0, 0)).completion.text.startswith(f"<solution>{LONG}")
    reader = next(r for r in policy.requests if r.turn == (1, 1))
    assert "By steps: \\boxed{4}" in reader.messages[-1].content
    assert "step by step, step" not in reader.messages[-1].content
    assert reader.messages[-1].content.count(SHORT) == 2
    assert shown(debate) == reader.messages[-1].content  # made again from what is stored
    [request] = asked(policy)
    assert request.turn == TurnId(COMPRESSOR, 0)
    assert PROBLEM.question in request.messages[0].content
    assert LONG in request.messages[0].content
    assert (request.max_tokens, request.temperature) == (60, 0.3)


@pytest.mark.parametrize(
    "bad",
    [
        "So \\boxed{5}",
        "\\boxed{4.0}",
        "",
        "x " * 300 + "\\boxed{4}",
        LONG,
        "y" * 61 + "\\boxed{4}",
        "\\boxed{5} \\boxed{4}",
        "so \\boxed{5 it is",
    ],
    ids=["other", "rewritten", "empty", "longer", "same", "truncated", "two", "unclosed"],
)
def test_what_cannot_be_shown_is_tried_again_and_then_the_solution_is_cut(bad):
    policy = Debaters(bad, bad, "By steps: \\boxed{4}")
    [one] = hold(policy).compressions
    assert (one.text, one.failed, len(one.completions)) == ("By steps: \\boxed{4}", False, TRIES)
    assert len({request.seed for request in asked(policy)}) == TRIES
    policy = Debaters(bad, bad, bad)
    debate = hold(policy)
    [one] = debate.compressions
    assert (one.failed, len(one.completions)) == (True, TRIES)
    assert one.text.startswith("step by step")
    assert last_boxed(one.text) == "4"
    assert len(one.text) < len(LONG) // 3
    assert one.text in shown(debate)


def test_an_answer_that_the_grader_reads_otherwise_is_refused():
    def agreed(problem, turns):
        return len({turn.completion.text.count("####") for turn in turns}) == 1

    policy = Debaters(*["By steps: \\boxed{4}"] * 2, "#### \\boxed{4}", long=LONG + " #### 4")
    [one] = hold(policy, agreed=agreed).compressions
    assert (one.text, len(one.completions)) == ("#### \\boxed{4}", TRIES)


def test_it_is_stored_counted_and_held_against_the_debate():
    debates = [hold(Debaters("By steps: \\boxed{4}")), hold(Debaters("", "", ""))]
    for debate in debates:
        record = Record(debate, 0, "g")
        assert from_line(to_line(record)).debate.compressions == debate.compressions
        tries = sum(reply.token_count for reply in debate.compressions[0].completions)
        replies = sum(len(turn.completion.tokens) for turn in debate.turns)
        assert facts_of(record).facts.tokens == replies + tries
    assert compression_metrics(debates, CONFIG) == {
        "compressions": 2.0,
        "compressions/failed": 1.0,
        "compressions/tokens": 23.0,  # 20, and three ends
    }
    assert compression_metrics(debates, DebateConfig()) == {}
    foreign = replace(debates[0], compressions=(replace(debates[0].compressions[0], turn=TurnId(7, 0)),))
    with pytest.raises(ValueError, match=r"debate.compressions\[0\].turn: there is no turn 7.0"):
        check_record(Record(foreign, 0, "g"))


@settings(max_examples=25)
@given(st.text(max_size=80))
def test_whatever_the_model_writes_the_box_that_others_read_is_the_authors(written):
    [one] = hold(Debaters(*[written] * TRIES)).compressions
    assert last_boxed(one.text) == "4"
    assert len(one.text) < len(LONG)
