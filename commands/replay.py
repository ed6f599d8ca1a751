"""``debate replay RUN``: what another reward scheme would have paid for the stored debates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from commands.errors import Ended
from commands.progress import progress_bar
from commands.replay_tables import show
from commands.runs import open_run_folder
from learner.recipes import ConfigError, parse_override
from transcripts import RunStore, compile_filter

if TYPE_CHECKING:
    from learner.replay import Scheme, Summary

MAY_CHANGE = ("rewards", "advantages")
DIFFERS = 1
"""The exit code where stored numbers are not those of the run's own scheme."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks for beside the scheme."""

    filter: str = ""
    steps: str = ""
    out: str | None = None
    json_path: str | None = None


def run_replay(name: str, asked: Asked, overrides: Sequence[str]) -> None:
    """Print what changes, and write it for each debate; without overrides only check what is stored."""
    from learner.replay import scheme_of
    from learner.replay.files import SCHEMA, facts_json, refuse_another, replay_name, write_facts
    from learner.runs.reading import refuse_own_rule

    refuse_other_keys(overrides)
    compile_filter(asked.filter)  # says what is wrong before anything is written
    refuse_own_rule(Path(name))
    run, config = open_run_folder(name, ())
    own, other = scheme_of(config), scheme_of(open_run_folder(name, overrides)[1])
    first, last = steps_of(asked.steps)
    if asked.json_path is not None and not Path(asked.json_path).parent.is_dir():
        raise ValueError(f"--json {asked.json_path}: cannot be written; name a file in a folder that exists")
    question = {"own": _plain(own), "scheme": _plain(other), "filter": asked.filter, "steps": [first, last]}
    folder = Path(asked.out or run / "replays" / replay_name(overrides, question))
    keep = own != other or asked.out is not None
    if keep:
        refuse_another(folder, question)
    summary, damage = _replay(run, (own, other), asked, (first, last), folder if keep else None)
    facts = {"schema": SCHEMA, "overrides": list(overrides), "asked": question}
    facts |= {"damaged_lines": damage, **summary.facts()}
    if keep:
        write_facts(folder, facts)  # before a reader that goes away can end the command
    if asked.json_path is not None:
        Path(asked.json_path).write_text(facts_json(facts), encoding="utf-8")
    show(Console(), str(run), summary, damage=damage, only_check=own == other)
    if keep:
        print(f"Every debate: {folder / 'debates.jsonl'}")
    if facts["differ"]:
        told = f"{facts['differ']} of {facts['checked']} debates"
        raise Ended(f"{run}: what is stored is not what its own scheme gives in {told}", DIFFERS)


def _replay(
    run: Path,
    schemes: tuple[Scheme, Scheme],
    asked: Asked,
    steps: tuple[int, int | None],
    folder: Path | None,
) -> tuple[Summary, int]:
    """Go through the debates, write them where a folder is given; return figures and damaged lines."""
    from learner.replay.files import write_debates
    from learner.replay.running import no_collections, replay_run
    from learner.replay.summary import Summary, counted

    (own, other), (first, last) = schemes, steps
    summary = Summary()
    with RunStore.open(run) as store, progress_bar() as progress, no_collections():
        damage = len(store.damage)
        task = progress.add_task("debates", total=store.count(f"step:..{last}" if last is not None else ""))
        found = replay_run(
            store,
            own,
            other,
            filter=asked.filter,
            first=first,
            last=last,
            tell=lambda: progress.advance(task),
        )
        changes = counted(found, summary)
        if folder is not None:
            write_debates(folder, changes)
        else:
            _exhaust(changes)
    return summary, damage


def _exhaust(values: Iterable[object]) -> None:
    for _ in values:
        pass


def refuse_other_keys(overrides: Iterable[str]) -> None:
    """Raise ConfigError for an override of what was said or how it was learnt from."""
    from learner.config import Config
    from learner.keys import check_key

    for text in overrides:
        path, _ = parse_override(text)
        if path[0] not in MAY_CHANGE:
            try:
                check_key(Config, ".".join(path))
            except ValueError as error:
                raise ConfigError(str(error)) from error
            raise ConfigError(f"{text}: a replay changes rewards.* and advantages.* only")


def _plain(scheme: Scheme) -> dict[str, object]:
    return {
        "rewards": scheme.rewards.model_dump(mode="json"),
        "advantages": scheme.advantages.model_dump(mode="json"),
        "debates_per_problem": scheme.group_size,
    }


def steps_of(text: str) -> tuple[int, int | None]:
    """Return the first and the last step of A..B, A.., ..B or A; None is the run's last.

    >>> steps_of("3..5"), steps_of("3.."), steps_of("..5"), steps_of("4"), steps_of("")
    ((3, 5), (3, None), (0, 5), (4, 4), (0, None))
    """
    if not text:
        return 0, None
    first, dots, last = text.partition("..")
    ends = (first, last) if dots else (first, first)
    good = all(end == "" or (end.isdecimal() and len(end) <= 11) for end in ends) and any(ends)
    low, high = (int(ends[0] or 0), int(ends[1]) if ends[1] else None) if good else (1, 0)
    if high is not None and high < low:
        raise ValueError(f"--steps {text!r}: write A..B with A no greater than B, A.., ..B or A, from 0")
    return low, high
