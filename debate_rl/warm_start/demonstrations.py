"""Demonstrations for the warm start of a tiny model: prompts of debates with scripted replies.

The code that runs debates also makes the prompts, so the warm start and debates use the same text. There are
four kinds of turns: ``solve`` (round 0), ``debate`` (a later round: solve, check the peers and compare them;
in a critique, criticism or a revision), ``ballot`` (check and compare), and ``drill`` (the checks of several
ballots in a row after a prompt of round 0, with a loss only on sums, verdicts and comparisons).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from random import Random
from typing import Any

from debate import DebateConfig, Message, Problem
from debate.prompting.fitting import ContextBudget
from debate.prompting.prompt import agent_prompt
from debate.prompting.rendering import render_entry
from debate.prompting.seating import Seating, seat_debate
from debate.prompting.shown import CRITIC, PublicTurn, asks_pairs, speakers
from debate.protocols import GAMES
from debate.types import TurnId
from debate_rl.config.warm_start import Kind, WarmStartConfig
from envs.families import FAMILIES

_NO_LIMIT = ContextBudget(None, lambda _: 0)
_VERDICT = re.compile(r" (right|wrong)")
_COPIED = re.compile(r"(?<=[:+])( \d+)")
_SUM = re.compile(r"(?<==)( \d+)")
_BETTER = re.compile(r"(?<=<comparison>)\w+")
_TAKEN_OVER = re.compile(r"(?<=<solution>)[^=]*")
_TARGET = re.compile(r"(?:<target>\w+)|(?:</evaluation>)")
_BOX = re.compile(r"\\boxed\{([^{}]*)\}")
_NOTHING = dict.fromkeys(("handle", "instructions", "answer", "own", "compared"), "")
_JUDGING = ((_COPIED, 2.0), (_VERDICT, 3.0), (_BETTER, 3.0))
"""Loss weights of the tokens that decide a judgment. Tokens that decide which solution is adopted have
weight 3, and all other tokens weight 1."""
Spans = tuple[tuple[int, int, float], ...]


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A prompt and its reply. ``weights``: (start, end, weight) of characters with another loss weight."""

    messages: tuple[Message, ...]
    reply: str
    weights: Spans = ()
    base_weight: float = 1.0


class Demonstrator:
    """Makes demonstrations for a synthetic family and a protocol. ``habits``: probabilities of mistakes.

    With ``own_right``, only solutions in the prompt have mistakes.
    """

    def __init__(
        self,
        family: str,
        config: DebateConfig,
        habits: WarmStartConfig,
        rng: Random,
        *,
        own_right: bool = False,
    ) -> None:
        self._family, self._own_right = FAMILIES[family], own_right
        self._check = lru_cache(maxsize=1 << 16)(self._family.write_check)
        self._config, self._habits, self._rng = config, habits, rng

    def show(self, kind: Kind, problem: Problem, *, only_right: bool = False) -> Demonstration:
        """Return a demonstration. With ``only_right``, its solution is right."""
        config = self._config
        in_game = config.protocol in GAMES
        alone = kind in ("solve", "drill")
        if in_game and alone:
            config = config.one_round()  # in a game, some agents have no opening turn
        seating = seat_debate(problem, config, self._rng.getrandbits(62))
        agents = list(range(config.num_agents))
        if in_game and not alone:
            agents = [CRITIC] if kind == "debate" else speakers(config, config.num_rounds)
        agent = self._rng.choice(agents)
        if kind == "drill":
            return self._drill(seating, agent)
        if kind != "solve":
            return self._turn(seating, agent, kind)
        seen = agent_prompt(seating, [], agent, 0, _NO_LIMIT)
        solution = self._solution(problem, agent, right=1.0 if only_right else None)
        if seating.texts.sections:
            return Demonstration(seen.messages, f"<solution>{solution}</solution>")
        if self._rng.random() >= self._habits.boxed:  # as base models write
            solution = _BOX.sub(r"The answer is\1.", solution)
        if self._rng.random() < self._habits.ramble:
            solution += f"\n\n{seating.opening}{seating.texts.opening_alone(**_NOTHING)}"
        return Demonstration(seen.messages, solution)

    def _turn(self, seating: Seating, agent: int, kind: Kind) -> Demonstration:
        """Return a turn that responds to the solutions in its prompt."""
        config, rng, problem = self._config, self._rng, seating.problem
        solutions = self._round(problem, agent, len(seating.handles))
        if config.protocol == "critique" and kind == "debate":
            return (self._revision if rng.random() < 0.5 else self._criticism)(seating, agent, solutions)
        if config.protocol in GAMES and kind == "debate":
            seen = agent_prompt(seating, [_entries(seating, solutions, 0)], agent, 0, _NO_LIMIT)
            return Demonstration(seen.messages, f"<solution>{self._solution(problem, agent)}</solution>")
        last, round_ = (config.num_rounds - 1, config.num_rounds) if kind == "ballot" else (0, 1)
        past = [_entries(seating, solutions, number) for number in range(last + 1)]
        pair = self._pair(problem, agent, solutions) if asks_pairs(config, round_) else None
        seen = agent_prompt(seating, past, agent, round_, _NO_LIMIT, pair=pair)
        if seen.task == "opening":  # history_rounds = 0: the prompt shows no solutions
            return Demonstration(seen.messages, f"<solution>{self._solution(problem, agent)}</solution>")
        checks = self._checks(problem, {turn.agent: solutions[turn.agent] for turn in seen.compared})
        judged = self._review(seating, checks, vote=seen.due)
        if kind == "ballot":
            return Demonstration(seen.messages, judged, _judging_weights(judged))
        good = [s for s in solutions if self._is_right(problem, s)]
        adopts = bool(good) and rng.random() < self._habits.adopt
        own = rng.choice(good) if adopts else self._solution(problem, agent)
        reply = f"<solution>{own}</solution>{judged}"
        taken = _spans(reply, (_TAKEN_OVER, 3.0)) if adopts else ()
        return Demonstration(seen.messages, reply, (*taken, *_judging_weights(reply)))

    def _pair(self, problem: Problem, agent: int, solutions: Sequence[str]) -> tuple[int, int]:
        """Return two other agents to compare, with the configured probability of a decidable pair."""
        pairs = list(combinations([other for other in range(len(solutions)) if other != agent], 2))
        self._rng.shuffle(pairs)
        wanted = self._rng.random() < self._habits.decidable
        right = [self._is_right(problem, solution) for solution in solutions]
        return next((pair for pair in pairs if (right[pair[0]] != right[pair[1]]) == wanted), pairs[0])

    def _criticism(self, seating: Seating, agent: int, solutions: Sequence[str]) -> Demonstration:
        """Return a turn of criticism: a check of each solution, with failed solutions as targets."""
        seen = agent_prompt(seating, [_entries(seating, solutions, 0)], agent, 1, _NO_LIMIT)
        checks = self._checks(seating.problem, {turn.agent: solutions[turn.agent] for turn in seen.compared})
        targets = "".join(f"<target>{h}</target>{said}" for h, said in _faults(seating, checks))
        review = self._review(seating, checks, vote=seen.due)
        reply = review.replace("</evaluation>", f"{targets}</evaluation>")
        return Demonstration(seen.messages, reply, (*_spans(reply, (_TARGET, 3.0)), *_judging_weights(reply)))

    def _revision(self, seating: Seating, agent: int, solutions: Sequence[str]) -> Demonstration:
        """Return a revision, which keeps a right solution and may replace a wrong solution by a right one."""
        problem, entries = seating.problem, list[Any]()
        for critic in range(len(solutions)):
            others = {other: text for other, text in enumerate(solutions) if other != critic}
            faults = _faults(seating, self._checks(problem, others))
            text = "\n".join(f"{handle}: {said.strip()}" for handle, said in faults) or None
            turn = PublicTurn(TurnId(critic, 1), seating.handles[critic], None, text, critic=True)
            entries.append(render_entry(seating.texts, turn))
        seen = agent_prompt(seating, [_entries(seating, solutions, 0), entries], agent, 2, _NO_LIMIT)
        good = [s for s in solutions if self._is_right(problem, s)]
        own = solutions[agent] if solutions[agent] in good else None
        if own is None and good and self._rng.random() < self._habits.adopt:
            own = self._rng.choice(good)
        reply = f"<solution>{own or self._solution(problem, agent)}</solution>"
        return Demonstration(seen.messages, reply, _spans(reply, (_TAKEN_OVER, 3.0)) if own else ())

    def _drill(self, seating: Seating, agent: int) -> Demonstration:
        problem, rng = seating.problem, self._rng
        seen = agent_prompt(seating, [], agent, 0, _NO_LIMIT)
        text = ""
        for _ in range(3):
            first = rng.random() < 0.5
            rights = (first, not first) if rng.random() < 0.85 else (first, first)
            agents = rng.sample(range(len(seating.handles)), 2)
            solutions: dict[int, str] = {}
            for other, right in zip(agents, rights, strict=True):
                tried = self._family.attempt(problem, rng, right=float(right), lure=0.0)
                tried = tried if right else self._maybe_invented(problem, tried)
                solutions[other] = self._family.write_solution(problem, tried)
            text += self._review(seating, self._checks(problem, solutions, lures=False), vote=True)
        spans = _spans(text, (_SUM, 1.0), (_VERDICT, 1.0), (_BETTER, 1.0))
        return Demonstration(seen.messages, text, spans, base_weight=0.0)

    def _round(self, problem: Problem, agent: int, count: int) -> list[str]:
        """Return a solution per agent, with the configured probability of a decidable pair for the judge."""
        wanted = self._rng.random() < self._habits.decidable
        solutions: list[str] = []
        for _ in range(12):
            solutions = [self._shown(problem, other) for other in range(count)]
            peers = (peer for peer in speakers(self._config, 0) if peer != agent)
            verdicts = {self._is_right(problem, solutions[peer]) for peer in peers}
            if (len(verdicts) == 2) == wanted:
                break
        return solutions

    def _shown(self, problem: Problem, agent: int) -> str:
        """Return a solution as other agents see it. Some wrong solutions are written to look right."""
        tried = self._attempt(problem, agent)
        honest: str = self._family.write_solution(problem, tried)
        if self._is_right(problem, honest):
            return honest
        tried = self._maybe_invented(problem, tried)
        lies = self._rng.random() < self._habits.lie
        return (self._family.write_lie if lies else self._family.write_solution)(problem, tried)

    def _maybe_invented(self, problem: Problem, tried: Any) -> Any:
        if self._rng.random() >= self._habits.invent:
            return tried
        return self._family.invent(problem, self._rng) or tried

    def _solution(self, problem: Problem, agent: int, *, right: float | None = None) -> str:
        right = 1.0 if self._own_right else right
        return self._family.write_solution(problem, self._attempt(problem, agent, right=right))

    def _attempt(self, problem: Problem, agent: int, *, right: float | None = None) -> Any:
        habits = self._habits
        chance = habits.right[agent % len(habits.right)] if right is None else right
        lure = habits.lure[agent % len(habits.lure)]
        return self._family.attempt(problem, self._rng, right=chance, lure=lure)

    def _checks(
        self, problem: Problem, solutions: Mapping[int, str], *, lures: bool = True
    ) -> dict[int, str]:
        """Return the check of each agent's solution. Without ``lures``, all checks are correct."""
        rng, misjudge = self._rng, self._habits.misjudge
        return {
            agent: self._check(problem, text, lured=lures and rng.random() < misjudge)
            for agent, text in solutions.items()
        }

    def _review(self, seating: Seating, checks: Mapping[int, str], *, vote: bool) -> str:
        """Return the checks as an evaluation, followed by the resulting comparison if ``vote``."""
        handles, rng = seating.handles, self._rng
        lines = "".join(f"{handles[agent]}:{text} " for agent, text in checks.items())
        order = sorted(checks, key=lambda agent: (" right" not in checks[agent], rng.random()))
        ranking = " > ".join(handles[agent] for agent in order)
        comparison = f"<comparison>{ranking}</comparison>" if vote else ""
        return f"<evaluation>{lines}</evaluation>{comparison}"

    def _is_right(self, problem: Problem, solution: str) -> bool:
        return " right" in self._check(problem, solution)


def _entries(seating: Seating, solutions: Sequence[str], round_: int) -> list[Any]:
    turns = (
        PublicTurn(TurnId(agent, round_), seating.handles[agent], text)
        for agent, text in enumerate(solutions)
    )
    return [render_entry(seating.texts, turn) for turn in turns]


def _faults(seating: Seating, checks: Mapping[int, str]) -> list[tuple[str, str]]:
    """Return the handles of wrong solutions, each with its check."""
    return [(seating.handles[agent], text) for agent, text in checks.items() if " right" not in text]


def _spans(text: str, *patterns: tuple[re.Pattern[str], float], start: int = 0) -> Spans:
    return tuple((*m.span(), weight) for pattern, weight in patterns for m in pattern.finditer(text, start))


def _judging_weights(reply: str) -> Spans:
    """Return the weights of the tokens that decide a judgment."""
    return _spans(reply, *_JUDGING, start=reply.index("<evaluation>"))
