"""What strategies cost and are read by where replies have more in them than what was sampled."""

from __future__ import annotations

import asyncio
from dataclasses import replace as with_fields

import msgspec
import pytest

from debate import Completion, DebateConfig, Problem
from debate.concurrency import run_async
from debate.policies.scripted import ScriptedPolicy
from debate.types import SUMMARIZER, Call, Span
from debate_rl.evaluation.asking import judge_of
from debate_rl.strategies.debate import debate_majority, debate_winner
from debate_rl.strategies.equal_cost import Contender, strategy_rows
from debate_rl.strategies.solving import SolvePlan, check_asked, solve_all
from debate_rl.strategies.work import Asked
from envs import load_environment

PROBLEM = Problem("p", "What is 2 + 2?", answer="4", kind="number")
NUMBERS = load_environment("gsm8k")
REPLY = "<solution>\n```python\nprint(9)\n```\n```output\n\\boxed{9}\n```\nDone.</solution>"


class Ran(ScriptedPolicy):
    """Two agents whose programs print a box, and one that never ends."""

    runs_programs = True

    async def sample(self, request):
        if request.turn.agent > 1:
            await asyncio.sleep(60)
        block, code = REPLY.index("```python"), REPLY.index("print")
        printed = REPLY.index("\\boxed")
        call = Call(Span(block, REPLY.index("Done")), Span(code, code + 9), Span(printed, printed + 9), "ok")
        return Completion((), (), (), REPLY, "stop", 0, calls=(call,))


@pytest.mark.parametrize("strategy", [debate_winner, debate_majority])
def test_what_a_program_printed_is_no_answer_where_the_clock_ends_a_debate(strategy):
    protocol = DebateConfig(num_rounds=1, tools="python")
    answered = run_async(strategy(Asked(PROBLEM, Ran({}), protocol, NUMBERS, seconds=0.2)))
    assert (answered.answer, answered.samples, answered.ended) == (None, 2, "seconds")


class HalfForced(ScriptedPolicy):
    """The first half of each reply was written by force."""

    async def sample(self, request):
        reply = await super().sample(request)
        return msgspec.structs.replace(reply, forced=tuple(range(len(reply.tokens) // 2)))


def test_equal_tokens_are_generated_ones_on_both_sides():
    policy = HalfForced(lambda request: f"\\boxed{{{request.turn.agent}}}", tokens=True)
    plan = SolvePlan("majority", DebateConfig(), NUMBERS, samples=4)
    pool = with_fields(plan, samples=8)
    [row] = strategy_rows([PROBLEM], [Contender(plan, policy)], Contender(pool, policy))
    assert row.samples == 4  # four solutions spend the tokens of four


SUMMARY = {"summary": {"enabled": True, "max_tokens": 50}}
SHORT = {"compress": {"over": 40, "max_tokens": 30}}


@pytest.mark.parametrize(("table", "more"), [(SUMMARY, 2 * 50), (SHORT, 2 * 3 * 3 * 30)])
def test_a_budget_holds_the_summaries_and_short_solutions_of_a_debate(table, more):
    protocol = DebateConfig.model_validate({"num_rounds": 2, "max_tokens": 70, **table})
    policy = ScriptedPolicy(lambda _: f"<solution>{'so ' * 15}</solution>" + "and " * 9, tokens=True)
    turns = 3 * 3 * 70
    asked = Asked(PROBLEM, policy, protocol, NUMBERS, tokens=turns + more - 1)
    with pytest.raises(ValueError, match=f"too small for one debate, which may have {turns + more:,} "):
        check_asked("debate_winner", asked)
    answered = run_async(debate_winner(with_fields(asked, tokens=turns + more)))
    assert turns < answered.tokens_generated <= turns + more


def test_summaries_are_written_by_the_model_that_the_recipe_names_and_cost_the_strategy():
    protocol = DebateConfig.model_validate({"num_rounds": 2, "final_ballot": False, **SUMMARY})
    policy = ScriptedPolicy({}, default="<solution>Done.</solution>", tokens=True)
    writer = ScriptedPolicy({}, default="All are done.", tokens=True)
    asked = Asked(PROBLEM, policy, protocol, NUMBERS, summarizer=lambda: writer)
    answered = run_async(debate_winner(asked))
    assert [request.turn.agent for request in writer.requests] == [SUMMARIZER]
    assert SUMMARIZER not in {request.turn.agent for request in policy.requests}
    spoken = answered.tokens_generated
    assert spoken == sum(
        len(run_async(one.sample(r)).tokens) for one in (policy, writer) for r in [*one.requests]
    )


def test_a_budget_too_small_for_one_level_is_refused_before_anything_is_sampled():
    levels = ({"level": "1", "num_rounds": 1},)
    protocol = DebateConfig.model_validate({"num_rounds": 2, "max_tokens": 10, "by_level": levels})
    problems = [Problem("a", "?", answer="4", level="1"), Problem("b", "?", answer="4", level="2")]
    policy = ScriptedPolicy({}, default="")
    with pytest.raises(ValueError, match="--tokens 60: is too small for one debate, which may have 90"):
        solve_all(problems, SolvePlan("debate_winner", protocol, NUMBERS, tokens=60), policy)
    assert policy.requests == []


def test_a_judge_runs_no_programs(tmp_path):
    recipe = tmp_path / "judge.toml"
    recipe.write_text('[env]\nkind = "gsm8k"\n[model]\nname_or_path = "x"\n[debate]\ntools = "python"\n')
    config, weights = judge_of(str(recipe))
    assert (config.debate.tools, weights) == ("none", None)
