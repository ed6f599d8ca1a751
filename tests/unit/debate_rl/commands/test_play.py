"""What a person sees of a debate; the text of a model is only ever text."""

import io
import re

import pytest
from rich.console import Console

from debate import DebateConfig, Problem, hold_debate
from debate.concurrency import run_async
from debate.policies.scripted import Answers, ScriptedPolicy, scripted_debaters
from debate_rl.commands.play import Stage, show_end
from rewards import RewardConfig, score_debate

PROBLEM = Problem("p", "What is 2 + 2?", answer="4", kind="number")
CONFIG = DebateConfig(num_agents=3, num_rounds=1, handles=("A1", "B2", "C3"))
RIGHT, WRONG = "<solution>\\boxed{4}</solution>", "<solution>\\boxed{5}</solution>"


def shown(replies, correct, *, terminal=False, problem=PROBLEM, config=CONFIG) -> str:
    """What is printed of a debate with these replies, or of this policy."""
    policy = replies
    if isinstance(replies, dict):
        policy = ScriptedPolicy(replies, default="<evaluation>-</evaluation><comparison></comparison>")
    out = io.StringIO()
    colours = "truecolor" if terminal else None
    console = Console(file=out, width=120, force_terminal=terminal, color_system=colours)
    grade = None if correct is None else lambda turn: correct[turn.id.agent][turn.id.round]
    stage = Stage(console, config.agent_personas, grade, prompts=False)
    debate = run_async(hold_debate(problem, policy, config, seed=1, on_said=stage.show))
    rewards = score_debate(debate, correct, RewardConfig(truth_weight=0.5))
    show_end(debate, rewards, console)
    return out.getvalue()


@pytest.mark.parametrize(("truth", "mark"), [(True, "✓ ─"), (False, "✗ ─"), ("missing", "∅ ─"), (None, "─")])
def test_a_mark_stands_only_where_the_truth_is_known(truth, mark):
    text = shown({(0, 0): RIGHT, (1, 0): RIGHT, (2, 0): RIGHT}, ((truth,), (None,), (None,)))
    [line] = [line for line in text.splitlines() if "Methodical" in line and "round 0" in line]
    assert f" · temperature 0.6 {mark}" in line


def test_votes_and_rewards_are_told_by_handle():
    policy = scripted_debaters({"p": Answers("4", ("5",))}, solve=(1.0, 0.0, 0.0), judge=1.0)
    lines = shown(policy, ((True,), (False,), (False,))).splitlines()
    [winner] = {line.split("·")[1].strip() for line in lines if "✓" in line}
    votes = [line for line in lines if re.search(r"│ ([ABC]\d) +│ 0 +│ [ABC]\d [<>] [ABC]\d +│", line)]
    assert len(votes) == 3  # each judges the other two
    [told] = [line.strip() for line in lines if "winner: " in line]
    assert re.fullmatch(rf"winner: {winner} [\w' ]+, round 0", told)
    [reward] = [line for line in lines if f"{winner} round 0" in line and "+" in line]
    # both votes about the right one are for it (peer +1), and it is right (truth +1)
    assert [cell.strip() for cell in reward.split("│")[2:4]] == ["+1.00", "+1.00"]


HOSTILE = [
    "\x1b[2J\x1b[31mgone\x1b]0;title\x07",
    "\x9b31m and \x90q",
    "[bold red]markup[/bold red] [/] [link=http://x]y[/link]",
    ":bomb: and \r overwritten \b\b\b",
    "\u202eright to left\u2066 \ud800 surrogate",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_the_text_of_a_model_drives_no_terminal(text):
    plain = shown({(agent, 0): "harmless" for agent in range(3)}, None, terminal=True)
    problem = Problem("p", text.replace("\ud800", ""), kind="open")
    said = shown({(agent, 0): text for agent in range(3)}, None, terminal=True, problem=problem)
    assert controls(said) == controls(plain)
    assert not {"\r", "\b", "\x07", "\x90", "\x9b", "\u202e", "\u2066", "\ud800"} & set(said)
    if "[" in text and "\x1b" not in text and "\x9b" not in text:
        assert text in said
    if ":bomb:" in text:
        assert ":bomb:" in said


def controls(text: str) -> list[str]:
    """The terminal sequences in a text, which all begin with an escape; frames of one colour are alike."""
    return sorted({part.partition("m")[0] for part in text.split("\x1b")[1:]})


def test_turns_are_shown_as_they_come():
    """Each one before the next is asked for, where a policy answers one after the other."""
    out, seen = io.StringIO(), []

    class Slow(ScriptedPolicy):
        async def sample(self, request):
            seen.append(out.getvalue().count("─ round 0"))
            return await super().sample(request)

    stage = Stage(Console(file=out, width=120), CONFIG.agent_personas, None, prompts=False)
    policy = Slow({}, default=RIGHT)
    run_async(hold_debate(PROBLEM, policy, CONFIG, seed=1, on_said=stage.show))
    assert seen == [0, 1, 2, 3, 3, 3]
