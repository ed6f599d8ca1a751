"""How many GPUs help, and what limits a step: a discrete-event model of debate RL.

python -m experiments.scale runs/mine --debates 512 --json scale.json
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Annotated

import typer

from debate import Completion, DebateConfig, Problem, SampleRequest, run_debates
from debate.policies import Answers, scripted_debaters
from debate.policy import token_counts
from debate_rl.commands.console import plain_console, text_table, wide_console, write_json
from debate_rl.commands.main import run_alone
from debate_rl.commands.options import JsonFile
from experiments.scale.model import Lengths, Outcome, Plan, Speed, critical_path_s, simulate
from transcripts import read_records

GPUS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
AHEAD = (0, 1, 4)


def scale(
    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="Take the lengths of a run's debates; default: made-up ones."),
    ] = None,
    debates: Annotated[int, typer.Option(help="Debates per step.")] = 512,
    longer: Annotated[float, typer.Option(help="Multiply the lengths of replies and prompts by this.")] = 1.0,
    check: Annotated[
        bool, typer.Option("--check", help="Instead compare the model with debates held here by the clock.")
    ] = False,
    json: JsonFile = None,
) -> None:
    """Simulate steps on 1 to 1,000 GPUs, and print seconds, tokens per second, idle time and staleness."""
    speed = Speed()
    if check:
        print_check()
        return
    stored = [scaled(one, longer) for one in (lengths_of(Path(run)) if run else made_up())]
    rows = list(simulated(debates, stored, speed))
    cells = [
        (
            str(plan.gpus),
            str(plan.learners or "in turn"),
            str(plan.async_level),
            "yes" if plan.lock_step else "no",
            f"{one.step_s:,.0f}",
            f"{one.tokens_per_s:,.0f}",
            f"{one.idle:.0%}",
            f"{one.staleness:.1f}",
        )
        for plan, one in rows
    ]
    heads = ("GPUs", "learners", "async_level", "lock-step", "step s", "tokens/s", "idle", "staleness")
    table = text_table(heads, cells)
    wide_console(200).print(table)
    path = critical_path_s(stored, speed)
    plain_console().print(f"the slowest stored debate takes {path:,.0f} s on a GPU of its own")
    if json is not None:
        found = [asdict(plan) | asdict(one) for plan, one in rows]
        write_json(json, {"speed": asdict(speed), "slowest_debate_s": path, "plans": found})


def simulated(debates: int, stored: list[Lengths], speed: Speed) -> Iterator[tuple[Plan, Outcome]]:
    """Yield each plan with its outcome. Of several numbers of learners, the one with the shortest step."""
    for gpus in GPUS:
        for lock_step in (True, False):
            plan = Plan(gpus, debates, lock_step=lock_step)
            yield plan, simulate(plan, stored, speed)
        for ahead in AHEAD[1:]:
            if gpus == 1:
                continue
            shares = sorted({max(1, min(gpus - 1, round(gpus * share))) for share in (0.25, 0.4, 0.55, 0.7)})
            steps = 3 + 2 * ahead
            plans = [Plan(gpus, debates, learners, async_level=ahead, steps=steps) for learners in shares]
            found = [(plan, simulate(plan, stored, speed)) for plan in plans]
            yield min(found, key=lambda one: one[1].step_s)


def print_check() -> None:
    """Hold debates with a policy that waits for each token, and print their seconds beside the model's."""
    lengths = made_up(debates=24)
    token_s = 0.001
    for held in (1, 8, 24):
        found = held_by_the_clock(lengths[:held], token_s)
        speed = Speed(
            token_s, 0.0, float("inf"), most_sequences=10**6, publish_s=0.0, learnt_tokens_per_s=1e18
        )
        modelled = critical_path_s(lengths[:held], speed)
        plain_console().print(f"{held} debates: held here in {found:.2f} s, by the model {modelled:.2f} s")


def held_by_the_clock(lengths: Sequence[Lengths], token_s: float) -> float:
    """Return the seconds in which ``run_debates`` holds debates whose replies take ``token_s`` per token."""
    problems = [Problem(str(index), "?", "1") for index in range(len(lengths))]
    scripted = scripted_debaters({one.id: Answers("1", ("2",)) for one in problems})

    class Timed:
        version = 0

        async def update(self, weights: object, version: int) -> None: ...

        async def sample(self, request: SampleRequest) -> Completion:
            of = lengths[int(request.debate.partition(":")[2])]
            await asyncio.sleep(of[request.turn.round][request.turn.agent][1] * token_s)
            return await scripted.sample(request)

    began = time.monotonic()
    run_debates(problems, Timed(), DebateConfig(num_rounds=2), seed=0)
    return time.monotonic() - began


def lengths_of(run: Path) -> list[Lengths]:
    """Return the token counts of a run's debates. ValueError if the run has none."""
    found: list[Lengths] = []
    for record in read_records(run):
        rounds = sorted({turn.id.round for turn in record.debate.turns})
        by_round = {
            number: [turn for turn in record.debate.turns if turn.id.round == number] for number in rounds
        }
        found.append(tuple(tuple(token_counts(turn.completion) for turn in by_round[one]) for one in rounds))
    if not found:
        raise ValueError(f"{run}: has no stored debates")
    return found


def made_up(agents: int = 3, rounds: int = 2, debates: int = 200) -> list[Lengths]:
    """Return debates whose replies have a median of 600 tokens (log-normal, sigma .6, at most 4,096)."""
    rng, found = Random(0), list[Lengths]()
    for _ in range(debates):
        shown, of_rounds = 0, list[tuple[tuple[int, int], ...]]()
        for round_ in range(rounds + 1):
            median = 600 if round_ < rounds else 150
            replies = [min(int(median * rng.lognormvariate(0, 0.6)) + 1, 4096) for _ in range(agents)]
            of_rounds.append(tuple((250 + shown, reply) for reply in replies))
            shown += sum(replies)
        found.append(tuple(of_rounds))
    return found


def scaled(lengths: Lengths, by: float) -> Lengths:
    """Return lengths multiplied by a number."""
    return tuple(
        tuple((round(prompt * by), max(round(tokens * by), 1)) for prompt, tokens in turns)
        for turns in lengths
    )


if __name__ == "__main__":
    run_alone(scale, "python -m experiments.scale")
