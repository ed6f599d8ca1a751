"""``debate inspect RUN branch``: change one thing in a stored debate, and hold the rest of it again."""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec import UNSET

from debate import Persona
from debate.branch import (
    LONGEST,
    Change,
    NewPersona,
    NewText,
    branch_debate,
    is_held_on,
    read_vote,
    with_change,
)
from debate.concurrency import run_async
from debate.files import read_plain
from debate.personas import PERSONAS
from debate.types import Debate, TurnId
from debate_rl.config import Config
from debate_rl.config.recipes import read_run_config
from debate_rl.engines import open_summarizer
from debate_rl.evaluation.asking import policy_of, weights_named
from debate_rl.evaluation.grading import IN_A_BOX, agreement
from debate_rl.inference.wrapped import engine_of
from debate_rl.inspector.views.branches import BranchView, branch_view
from debate_rl.replay.branches import branch_record, effect_of, origin_of, store_branch
from debate_rl.replay.regrading import own_environment
from debate_rl.replay.scheme import scheme_of
from debate_rl.runs.weights import version_of
from envs import Environment
from envs.registry import environment_of
from transcripts import Record, RunStore

STDIN = "-"


def branch(
    store: RunStore,
    id: str,
    turn: TurnId,
    *,
    text: str | None = None,
    vote: str | None = None,
    persona: str | None = None,
    weights: str | None = None,
) -> BranchView:
    """Branch a stored debate, store the branch in the run, and return it against its debate.

    Exactly one of ``text`` (a file, or "-"), ``vote`` and ``persona`` is given. ValueError, in one line, for
    a change that does not fit, and for weights that the run does not have.
    """
    config = read_run_config(store.run)
    record = store.debate(id, tokens=True)
    change = _change(record.debate, config, text, vote, persona)
    debate, by = with_change(record.debate, turn, change), ""  # raises an error before a model is loaded
    environment = own_environment(store.run) or environment_of(record.debate.problem)
    if is_held_on(record.debate, turn, change):
        debate, by = _held(store.run, config, record, turn, change, weights or "newest", environment)
    elif weights is not None:
        raise ValueError("--weights: no later turn reads this change, so none is held again; leave it out")
    effect = effect_of(store, scheme_of(config), id, branch_record(record, debate, environment))
    origin = store_branch(store.run, effect.after, origin_of(record, id, turn, change, by))
    return branch_view(origin, effect)


def _change(
    debate: Debate, config: Config, text: str | None, vote: str | None, persona: str | None
) -> Change:
    if [text, vote, persona].count(None) != 2:
        raise ValueError("branch: give one of --text FILE, --vote 'K7>M4' and --persona NAME")
    if text is not None:
        return NewText(_text(text))
    if vote is not None:
        return read_vote(vote)
    known: dict[str, Persona] = {
        one.name.lower(): one for one in (*PERSONAS, *config.debate.agent_personas, *debate.personas)
    }
    if str(persona).lower() not in known:
        names = ", ".join(one.name for one in known.values())
        raise ValueError(f"--persona {persona}: is none of {names}")
    return NewPersona(known[str(persona).lower()])


def _text(file: str) -> str:
    """Return the text of --text. ValueError if it is not UTF-8."""
    try:
        text = sys.stdin.read(LONGEST + 1) if file == STDIN else read_plain(Path(file)).decode()
        text.encode()  # in the locale C, stdin has half characters instead of an error
        return text
    except UnicodeError as error:
        raise ValueError(f"--text {file}: is not UTF-8") from error


def _held(
    run: Path,
    config: Config,
    record: Record,
    turn: TurnId,
    change: Change,
    weights: str,
    environment: Environment,
) -> tuple[Debate, str]:
    """Return the debate with its later turns held by a checkpoint, and the checkpoint's name."""
    served = config.model.policy == "openai"
    path = None if served else weights_named(run, weights, str(run))
    mode = IN_A_BOX if record.mode is UNSET else record.mode
    print("debate: loading the model, then holding the later turns again", file=sys.stderr)
    with policy_of(config, path) as unopened:
        policy = unopened.open()
        if path is not None:
            engine_of(policy).version = version_of(path)
        debate = run_async(
            branch_debate(
                record.debate,
                turn,
                change,
                policy,
                summarizer=open_summarizer(config),
                agreed=agreement(environment, mode),  # type: ignore[arg-type]
            )
        )
    return debate, path.name if path else "the served model"
