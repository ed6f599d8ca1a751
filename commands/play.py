"""``debate play CONFIG "problem"``: one debate, in colour, with its votes and rewards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.panel import Panel
from rich.table import Table as RichTable
from rich.text import Text

from commands.config import load_config
from debate import Debate, Problem, Turn, run_debates
from envs import load_environment
from rewards import Rewards, Truth, score_debate

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red", "white")
Verdicts = Sequence[Sequence[Truth]] | None


def run_play(name: str, question: str, *, answer: str | None, seed: int, overrides: Sequence[str]) -> None:
    """Hold one debate with the configured model, or the newest checkpoint of a run, and print it."""
    from learner.config import Config
    from learner.grading import grade_debate
    from learner.session import open_policy

    run = Path(name) if (Path(name) / "config.toml").is_file() else None
    config = load_config(Config, str(run / "config.toml") if run else name, overrides)
    policy = open_policy(config, run)
    checkable = answer is not None or config.env.kind in ("pair_sum", "words")
    kind = "expression" if checkable else "open"
    problem = Problem("play", question, answer=answer, source="play", kind=kind)
    [debate] = run_debates([problem], policy, config.debate, seed=seed)
    env = config.env
    environment = load_environment(env.kind if env.kind in ("pair_sum", "words") else "gsm8k")
    correct = grade_debate(environment, debate)
    rewards = score_debate(debate, correct, config.rewards)
    show_debate(debate, correct, rewards, Console())


def show_debate(debate: Debate, correct: Verdicts, rewards: Rewards, console: Console) -> None:
    """Print the turns round by round, then the votes and the rewards of every turn.

    Model text is printed as plain text: no markup and no terminal control sequence of it takes effect.
    """
    console.print(Panel(_plain(debate.problem.question), title="problem"))
    for turn in debate.turns:
        console.print(_turn_panel(debate, turn, correct))
    console.print(_votes(debate))
    console.print(_rewards(debate, rewards))


def _turn_panel(debate: Debate, turn: Turn, correct: Verdicts) -> Panel:
    agent, round_ = turn.id.agent, turn.id.round
    where = "final ballot" if turn.ballot else f"round {round_}"
    mark = (
        ""
        if turn.ballot or correct is None
        else {True: " ✓", False: " ✗"}.get(correct[agent][round_] is True)
    )
    persona = debate.personas[agent]
    title = f"{where} · {turn.handle} · {persona.name} · T {persona.temperature:g}{mark}"
    colour = COLOURS[agent % len(COLOURS)]
    return Panel(_plain(turn.completion.text), title=title, title_align="left", border_style=colour)


def _votes(debate: Debate) -> RichTable:
    table = RichTable(title="votes", show_header=True)
    for column in ("judge", "on round", "vote"):
        table.add_column(column)
    sign = {"left": ">", "right": "<", "tie": "="}
    handle = {turn.id.agent: turn.handle for turn in debate.turns}
    for vote in debate.votes:
        told = f"{handle[vote.left.agent]} {sign[vote.outcome]} {handle[vote.right.agent]}"
        table.add_row(handle[vote.judge.agent], str(vote.left.round), told)
    return table


def _rewards(debate: Debate, rewards: Rewards) -> RichTable:
    table = RichTable(title="rewards (blank: no signal)")
    for column in ("turn", "peer", "truth", "judge", "format"):
        table.add_column(column, justify="left" if column == "turn" else "right")
    for turn in debate.turns:
        agent, round_ = turn.id.agent, turn.id.round
        solved = () if turn.ballot else (rewards.peer[agent][round_], rewards.truth[agent][round_])
        cells = (*(solved or (None, None)), rewards.judge[agent][round_], rewards.format[agent][round_])
        where = "ballot" if turn.ballot else f"round {round_}"
        table.add_row(f"{turn.handle} {where}", *("" if c is None else f"{c:+.2f}" for c in cells))
    return table


def _plain(text: str) -> Text:
    """Return the text without control characters, so that a model cannot drive the terminal."""
    return Text("".join(c if c == "\n" or c.isprintable() else "�" for c in text))
