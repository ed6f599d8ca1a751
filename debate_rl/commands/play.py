"""``debate solve play CONFIG "problem"``: hold one debate and print its turns, votes and rewards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from json import loads
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from debate import Debate, Message, Persona, Problem, Turn, hold_debate
from debate.concurrency import run_async
from debate.hold import debate_name
from debate.seeds import debate_seed
from debate.types import WITHOUT_TRUTH, Kind, Summary
from debate.values import whole_text
from debate_rl.commands.console import plain_console, printed, text_table, write_json
from debate_rl.commands.options import JsonFile, KindOption, Overrides, RecipeOrRun, SeedOption
from debate_rl.config import Config
from debate_rl.config.recipes import open_run_or_recipe
from debate_rl.engines import open_summarizer, refuse_no_gpu
from debate_rl.evaluation.asking import policy_of
from debate_rl.evaluation.grading import agreement, grade_debate, grade_turn, opened_verifying
from debate_rl.evaluation.play import CountedReplies, turns_of
from debate_rl.formatting import GRADE_SIGNS, counted, fixed
from debate_rl.metrics.features import segments
from debate_rl.metrics.progress import parts_shown
from debate_rl.replay.scheme import replay_step, scheme_of, score_step
from debate_rl.runs.folder import open_run
from debate_rl.runs.weights import newest_weights
from debate_rl.strategies.posing import family_named
from envs import DataError, Environment, load_environment
from envs.data.loading import question_hash
from envs.instructions import constraints_of
from envs.registry import key_by_itself
from rewards import STREAMS, Rewards, Truth, score_debates, voted_winner
from rewards.truth import GRADES
from rewards.types import OPTIONAL_STREAMS, stream_named, value_of
from rewards.winner import best_voted
from transcripts import Record, ShardWriter
from transcripts.codec import to_line, without_tokens
from transcripts.files import shard_paths, shard_step

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red", "white")
SIGNS = {"left": ">", "right": "<", "tie": "="}


def play(
    config: RecipeOrRun,
    problem: Annotated[str, typer.Argument(metavar="PROBLEM", help="The problem to debate.")],
    answer: Annotated[str | None, typer.Option(help="The gold answer; solutions are graded by it.")] = None,
    kind: KindOption = None,
    seed: SeedOption = 0,
    prompts: Annotated[bool, typer.Option("--prompts", help="Show the prompt of each turn.")] = False,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER", help="Store the debate in this folder, which inspect and replay read as a run."
        ),
    ] = None,
    json: JsonFile = None,
    overrides: Overrides = None,
) -> None:
    """Hold one debate: show each turn as it ends, then votes and rewards."""
    run, settings = open_run_or_recipe(config, overrides or ())
    if settings.model.policy == "vllm":
        refuse_no_gpu(settings)
    environment, posed = _truth(settings.env.kind, problem, answer, kind)
    if kind == "rubric" and (settings.verifier.endpoint is None or settings.verifier.own_rubric() is None):
        raise ValueError("--kind rubric: needs a verifier model; set verifier.endpoint and verifier.rubric")
    weights = newest_weights(run) if run else None
    console = Console()
    with ExitStack() as stack:
        verifying = stack.enter_context(opened_verifying(settings, checked=True))
        kept = None if out is None else stack.enter_context(_folder(out, settings))
        debate = _held(stack, settings, weights, environment, posed, seed, console, prompts=prompts)
        pending = verifying.begin(debate) if verifying else None
        verdicts = pending.verdicts() if pending else None
        debate, correct = grade_debate(environment, debate, mode=settings.grader.final)
        [rewards], _ = score_debates(
            *([debate], [correct], [debate.problem.id], settings.rewards.at_step(0)),
            seed=settings.seed,
            verdicts=[verdicts],
            key=key_by_itself,
        )
        table: Any = None if correct is None else tuple(map(tuple, correct))
        record = Record(debate, 0, debate.problem.id, table, rewards)
        if kept is not None:
            _keep(kept, record, settings)
    show_end(debate, rewards, console)
    if debate.protocol.protocol == "critique":
        rows = [
            (one.name, one.stream, f"{one.weight:g}", fixed(one.reward, "+.2f", none=""), str(one.turns))
            for one in segments(debate, rewards, settings.rewards, settings.advantages)
        ]
        heads = ("segment", "stream", "weight", "mean reward", "turns")
        Console().print(text_table(heads, rows, title="segments (blank: no signal)"))
    if verdicts is not None:
        solved = [turn for turn in debate.turns if not turn.ballot]
        scores = [(verdicts.score(turn.id), verdicts.passes(turn.id)) for turn in solved]
        passed = {True: "yes", False: "no", None: ""}
        rows = [
            (f"{turn.id.agent}.{turn.id.round}", "none" if score is None else f"{score:g}", passed[passes])
            for turn, (score, passes) in zip(solved, scores, strict=True)
        ]
        Console().print(plain_text(f"verdicts of {verdicts.verifier}: no ground truth"))
        Console().print(text_table(("turn", "score", "passes"), rows))
    if json is not None:
        write_json(json, loads(to_line(without_tokens(record))))


def _held(
    stack: ExitStack,
    settings: Config,
    weights: Path | None,
    environment: Environment,
    posed: Problem,
    seed: int,
    console: Console,
    *,
    prompts: bool,
) -> Debate:
    """Load the model and hold the debate, printing each turn."""
    protocol, mode = settings.debate.of_level(posed.level), settings.grader.final
    turns = turns_of(protocol)
    what = f"{counted(turns, 'turn')} of {counted(protocol.num_agents, 'agent')}"
    served = settings.model.policy == "openai"
    plain_console(stderr=True, quiet=served).print(f"loading the model, then {what}")
    policy = stack.enter_context(policy_of(settings, weights)).open()
    parts = stack.enter_context(parts_shown("auto", console if console.is_terminal else None))
    parts.advance("turns", 0, turns)
    speaker = CountedReplies(policy, lambda _: parts.advance("turns", min(speaker.count, turns), turns))
    console.print(Panel(plain_text(posed.question), title="problem"))

    def grade(turn: Turn) -> Truth:
        return grade_turn(environment, posed, turn, mode).verdict

    known = None if posed.kind in WITHOUT_TRUTH else grade
    stage = Stage(console, protocol.agent_personas, known, prompts=prompts)
    return run_async(
        hold_debate(
            posed,
            speaker,
            settings.debate,
            seed=debate_seed(seed, 0, posed),
            name=debate_name(0, posed.id),
            summarizer=open_summarizer(settings),
            agreed=agreement(environment, mode),
            on_said=stage.show,
        )
    )


@contextmanager
def _folder(name: str, settings: Config) -> Iterator[ShardWriter]:
    """Lock a folder for debates of one configuration. Each debate is stored as a step.

    Raise RunFolderError if the folder contains anything else.
    """
    config = settings.model_copy(update={"run": settings.run.model_copy(update={"dir": name})})
    with open_run(name, config, seed=config.seed) as run:
        run.record()
        run.transcripts.mkdir(exist_ok=True)
        steps = [step for path in shard_paths(run.transcripts) if (step := shard_step(path)) is not None]
        with ShardWriter(run.transcripts, max(steps, default=-1) + 1) as writer:
            yield writer


def _keep(writer: ShardWriter, record: Record, settings: Config) -> None:
    """Write a debate with the advantages of a step that contains only this debate."""
    scheme, record = scheme_of(settings), replace(record, step=writer.step)
    [replayed] = replay_step(score_step([record], scheme), scheme, {})
    writer.write(replace(record, rewards=replayed.rewards, advantages=replayed.advantages))


def _truth(
    name: str, question: str, answer: str | None, kind: Kind | None = None
) -> tuple[Environment, Problem]:
    """Return the environment that grades the debate, and the problem.

    A synthetic family grades its own problems. Other problems need an answer in the format of their kind;
    without one, their kind is "open".

    >>> [_truth("pair_sum", text, None)[1].kind for text in ("Target 9. Numbers 4 5 1.", "What is 2 + 2?")]
    ['expression', 'open']
    """
    text = whole_text(question)
    problem = Problem(f"play-{question_hash(text)[:8]}", text, answer=answer, source="play")
    if kind is None and (family := family_named([problem], name)) is not None:
        if answer is not None:
            raise DataError(f"--answer: problems of {name} are graded by their own rule; leave it out")
        return family, problem
    environment = load_environment(
        name if ":" in name else "gsm8k"
    )  # all data sets compare answers in the same way
    if kind == "rubric":
        return environment, replace(problem, kind=kind, answer=None)
    known: Kind = "open" if answer is None else kind or "expression"
    if known != (kind or known):
        raise DataError(f"--kind {kind}: needs --answer, the right answer")
    if known == "instructions":
        constraints_of(answer or "")  # raises ValueError for constraints that cannot be checked
    return environment, replace(problem, kind=known)


class Stage:
    """Prints a debate turn by turn, with the prompts if ``prompts``.

    Model text is printed as plain text: its markup and terminal control sequences have no effect.
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
        """Print a turn or a summary, after its prompt if requested."""
        for message in read if self._prompts else ():
            self._panel(message.content, f"prompt, {message.role}", "dim")
        if isinstance(said, Summary):
            self._panel(said.text, "summary shown to all")
        else:
            self._show_turn(said)

    def _panel(self, text: str, title: str, style: str = "none") -> None:
        panel = Panel(plain_text(text), title=plain_text(title), title_align="left", border_style=style)
        self._console.print(panel)

    def _show_turn(self, turn: Turn) -> None:
        """Print a turn, with its thinking reduced to one line."""
        persona = self._personas[turn.id.agent]
        grade = self._grade(turn) if self._grade is not None and not turn.ballot else None
        mark = "" if grade is None else f" {GRADE_SIGNS[GRADES[grade]]}"
        who = f"{turn.handle} · {persona.name} · temperature {persona.temperature:g}{mark}"
        text, thinking = turn.completion.text, turn.parsed.thinking
        if thinking is not None:
            count = thinking.end - thinking.start
            rest = text[thinking.end :].lstrip()
            text = f"{text[: thinking.start]}(thinking, {count} characters)\n{rest}"
        self._panel(text, f"{_round_of(turn)} · {who}", COLOURS[turn.id.agent % len(COLOURS)])


def show_end(debate: Debate, rewards: Rewards, console: Console) -> None:
    """Print the votes and the rewards of every turn of a debate."""
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
    winner, line = voted_winner(rewards.peer, seed=debate.seed), "winner: none, no vote is valid"
    if winner is not None:
        best = [debate.turn(turn).handle for turn in best_voted(rewards.peer)]
        lot = f", drawn among {', '.join(best)}" if len(best) > 1 else ""
        name = f"{handles[winner.agent]} {debate.personas[winner.agent].name}"
        line = f"winner: {name}, round {winner.round}{lot}"
    console.print(plain_text(line), soft_wrap=True)
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
    """Return the name of a turn's round."""
    if turn.parsed.targets is not None:
        return f"round {turn.id.round}, criticism of {', '.join(turn.parsed.targets) or 'nobody'}"
    return "final ballot" if turn.ballot else f"round {turn.id.round}"


def plain_text(text: str) -> Text:
    r"""Return the text without control characters, so that a model cannot control the terminal.

    >>> plain_text("a\tb [red]\x1b[2J\u202e").plain
    'a b [red]�[2J�'
    """
    return Text(printed(text))
