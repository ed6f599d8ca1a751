"""A debate as it is held, on the terminal: turns in colour, then votes and rewards."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from debate import Debate, Message, Persona, Turn
from debate.types import Summary
from debate_rl.commands.console import printed, text_table
from debate_rl.formatting import GRADE_SIGNS, fixed
from rewards import STREAMS, Rewards, Truth, voted_winner
from rewards.peer import best_voted
from rewards.truth import GRADES
from rewards.types import OPTIONAL_STREAMS, Verdicts, stream_named, value_of

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red", "white")
SIGNS = {"left": ">", "right": "<", "tie": "="}


class Stage:
    """Prints what is said in a debate as it comes, with the prompt that it read if ``prompts``.

    Model text is printed as plain text: no markup and no terminal control sequence of it takes effect.
    """

    def __init__(
        self,
        console: Console,
        personas: Sequence[Persona],
        grade: Callable[[Turn], Truth] | None,
        *,
        prompts: bool,
    ) -> None:
        self._console, self._personas = console, personas
        self._grade, self._prompts = grade, prompts

    def show(self, said: Turn | Summary, read: Sequence[Message]) -> None:
        """Print a turn, or a summary, and before it what it read."""
        for message in read if self._prompts else ():
            title = f"prompt, {message.role}"
            panel = Panel(plain_text(message.content), title=title, title_align="left", border_style="dim")
            self._console.print(panel)
        if isinstance(said, Summary):
            panel = Panel(plain_text(said.text), title="summary shown to all", title_align="left")
        else:
            panel = self._turn_panel(said)
        self._console.print(panel)

    def _turn_panel(self, turn: Turn) -> Panel:
        """Return a turn, with one line in place of its thinking."""
        persona = self._personas[turn.id.agent]
        grade = self._grade(turn) if self._grade is not None and not turn.ballot else None
        mark = "" if grade is None else f" {GRADE_SIGNS[GRADES[grade]]}"
        who = f"{turn.handle} · {persona.name} · temperature {persona.temperature:g}{mark}"
        text, thinking = turn.completion.text, turn.parsed.thinking
        if thinking is not None:
            count = thinking.end - thinking.start
            rest = text[thinking.end :].lstrip()
            text = f"{text[: thinking.start]}(thinking, {count} characters)\n{rest}"
        title = plain_text(f"{_round_of(turn)} · {who}")
        colour = COLOURS[turn.id.agent % len(COLOURS)]
        return Panel(plain_text(text), title=title, title_align="left", border_style=colour)


def show_end(debate: Debate, rewards: Rewards, console: Console) -> None:
    """Print the votes and the rewards of every turn of a debate that was shown."""
    handles = {turn.id.agent: turn.handle for turn in debate.turns}
    votes = [
        (
            handles[vote.judge.agent],
            str(vote.left.round),
            f"{handles[vote.left.agent]} {SIGNS[vote.outcome]} {handles[vote.right.agent]}",
        )
        for vote in debate.votes
    ]
    if votes:
        console.print(text_table(("judge", "on round", "vote"), votes, align="l", title="votes"))
    console.print(_winner_line(debate, rewards), soft_wrap=True)
    names = (*STREAMS, *(name for name in OPTIONAL_STREAMS if stream_named(rewards, name)))
    rows = [
        (
            f"{turn.handle} {_round_of(turn)}",
            *(fixed(value_of(stream_named(rewards, name), turn.id), "+.2f", none="") for name in names),
        )
        for turn in debate.turns
    ]
    console.print(text_table(("turn", *names), rows, title="rewards (blank: no signal)"))


def _round_of(turn: Turn) -> str:
    """Return what a turn's round is called."""
    if turn.parsed.targets is not None:
        return f"round {turn.id.round}, criticism of {', '.join(turn.parsed.targets) or 'nobody'}"
    return "final ballot" if turn.ballot else f"round {turn.id.round}"


def _winner_line(debate: Debate, rewards: Rewards) -> Text:
    winner = voted_winner(rewards.peer, seed=debate.seed)
    if winner is None:
        return Text("winner: none, no vote is valid")
    handle, persona = debate.turn(winner).handle, debate.personas[winner.agent].name
    best = best_voted(rewards.peer)
    lot = f", drawn among {', '.join(debate.turn(turn).handle for turn in best)}" if len(best) > 1 else ""
    return plain_text(f"winner: {handle} {persona}, round {winner.round}{lot}")


def plain_text(text: str) -> Text:
    r"""Return the text without control characters, so that a model cannot drive the terminal.

    >>> plain_text("a\tb [red]\x1b[2J\u202e").plain
    'a b [red]�[2J�'
    """
    return Text(printed(text))


def show_verdicts(debate: Debate, verdicts: Verdicts) -> None:
    """Print what a verifier model says of each solution: no ground truth."""
    rows: list[list[str]] = []
    for turn in (turn for turn in debate.turns if not turn.ballot):
        score, passes = verdicts.score(turn.id), verdicts.passes(turn.id)
        words = {True: "yes", False: "no", None: ""}[passes]
        rows.append([f"{turn.id.agent}.{turn.id.round}", "none" if score is None else f"{score:g}", words])
    Console().print(plain_text(f"verdicts of {verdicts.verifier}: no ground truth"))
    Console().print(text_table(("turn", "score", "passes"), rows))
