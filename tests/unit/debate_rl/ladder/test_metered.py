"""What a rung takes of the engine: its own replies and its summariser's."""

from __future__ import annotations

from collections import defaultdict

from debate import DebateConfig, Problem
from debate.policies.scripted import ScriptedPolicy
from debate_rl.ladder.metered import Meter, Metered
from debate_rl.strategies.solving import SolvePlan, solve_all
from envs import load_environment


def speaker(text, seconds):
    policy = ScriptedPolicy(lambda _: text, tokens=True)
    policy.seconds = defaultdict(lambda: seconds)
    return policy


def test_a_summariser_is_on_the_meter():
    policy, summarizer, meter = speaker("<solution>\\boxed{7}</solution>", 1.0), speaker("7.", 0.25), Meter()
    protocol = DebateConfig(num_agents=2, num_rounds=3, summary={"enabled": True})
    plan = SolvePlan("debate_majority", protocol, load_environment("gsm8k"), summarizer=lambda: summarizer)
    solve_all([Problem("p", "?", answer="7")], meter.on_summaries(plan), Metered(policy, meter))
    assert (len(policy.requests), len(summarizer.requests)) == (6, 2)
    assert meter.seconds == 6.5
