"""Demonstrations for the warm start of a tiny model: the debate's own prompts, answered by a script.

Prompts come from the code that runs debates, so training and debating see the same text. Four kinds:
``solve`` (a turn of round 0), ``debate`` (a later round: solve, check the peers, compare; in a critique
criticism or a revision), ``ballot`` (check and compare), and ``drill`` (several ballots' checks in a row
behind a prompt of round 0, of which only the sums, verdicts and comparisons are learnt).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
_WEIGHTS = ((_COPIED, 2.0), (_VERDICT, 3.0), (_BETTER, 3.0))
"""How much the tokens that decide a judgment weigh in the loss; all others weigh 1, but for those that decide
which solution is taken over, which weigh 3 too."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A prompt and its reply; ``weights``: (start, end, weight) of characters that differ from the base."""

    messages: tuple[Message, ...]
    reply: str
    weights: tuple[tuple[int, int, float], ...] = ()
    base_weight: float = 1.0


class Demonstrator:
    """Makes demonstrations of one synthetic family under one protocol; ``habits`` are chances of mistakes."""

    def __init__(self, family: str, config: DebateConfig, habits: WarmStartConfig, rng: Random) -> None:
        self._family = FAMILIES[family]
        self._check = lru_cache(maxsize=1 << 16)(self._family.write_check)
        self._config, self._habits, self._rng = config, habits, rng

    def show(self, kind: Kind, problem: Problem, *, only_right: bool = False) -> Demonstration:
        """Return one demonstration; ``only_right`` solves without mistakes."""
        config = self._config
        if config.protocol in GAMES and kind in ("solve", "drill"):
            config = config.one_round()  # in a game not everybody has an opening of its own
        seating = seat_debate(problem, config, self._rng.getrandbits(62))
        agent = self._rng.choice(self._speakers(kind))
        if kind == "solve":
            seen = agent_prompt(seating, [], agent, 0, _NO_LIMIT)
            solution = self._solution(problem, agent, right=1.0 if only_right else None)
            return Demonstration(seen.messages, self._solved(seating, solution))
        if kind == "drill":
            return self._drill(seating, agent)
        return self._turn(seating, agent, kind)

    def _speakers(self, kind: Kind) -> list[int]:
        """Return the agents whose turns a kind of demonstration is of."""
        config = self._config
        if config.protocol not in GAMES or kind in ("solve", "drill"):
            return list(range(config.num_agents))
        return [CRITIC] if kind == "debate" else speakers(config, config.num_rounds)

    def _solved(self, seating: Seating, solution: str) -> str:
        """Return a reply of round 0: a section, or of a prompt family what a base model may write."""
        if seating.texts.sections:
            return f"<solution>{solution}</solution>"
        if self._rng.random() >= self._habits.boxed:
            solution = _BOX.sub(r"The answer is\1.", solution)
        if self._rng.random() < self._habits.ramble:
            solution += f"\n\n{seating.opening}{seating.texts.opening_alone(**_NOTHING)}"
        return solution

    def _turn(self, seating: Seating, agent: int, kind: Kind) -> Demonstration:
        """Return a turn that answers to solutions shown."""
        config, rng = self._config, self._rng
        solutions = self._round(seating, agent)
        if config.protocol == "critique" and kind == "debate":
            revises = rng.random() < 0.5
            return (self._revision if revises else self._criticism)(seating, agent, solutions)
        if config.protocol in GAMES and kind == "debate":
            seen = agent_prompt(seating, [self._entries(seating, solutions, 0)], agent, 0, _NO_LIMIT)
            return Demonstration(
                seen.messages, f"<solution>{self._solution(seating.problem, agent)}</solution>"
            )
        last = config.num_rounds - 1 if kind == "ballot" else 0
        past = [self._entries(seating, solutions, round_) for round_ in range(last + 1)]
        round_ = config.num_rounds if kind == "ballot" else 1
        pair = self._pair(seating.problem, agent, solutions) if asks_pairs(config, round_) else None
        seen = agent_prompt(seating, past, agent, round_, _NO_LIMIT, pair=pair)
        if seen.task == "opening":  # history_rounds = 0: nothing is shown
            alone = self._solution(seating.problem, agent)
            return Demonstration(seen.messages, f"<solution>{alone}</solution>")
        judged = self._judging(seating, [turn.agent for turn in seen.compared], solutions, vote=seen.due)
        if kind == "ballot":
            return self._weighted(seen.messages, judged)
        good = [s for s in solutions if self._is_right(seating.problem, s)]
        adopts = bool(good) and rng.random() < self._habits.adopt
        own = rng.choice(good) if adopts else self._solution(seating.problem, agent)
        turn = self._weighted(seen.messages, f"<solution>{own}</solution>{judged}")
        chosen = [(*m.span(), 3.0) for m in _TAKEN_OVER.finditer(turn.reply) if adopts]
        return replace(turn, weights=(*chosen, *turn.weights))

    def _pair(self, problem: Problem, agent: int, solutions: Sequence[str]) -> tuple[int, int]:
        """Return two others to compare, of whom exactly one is right as often as configured, if there are."""
        others = [other for other in range(len(solutions)) if other != agent]
        pairs = list(combinations(others, 2))
        self._rng.shuffle(pairs)
        wanted = self._rng.random() < self._habits.decidable
        right = [self._is_right(problem, solution) for solution in solutions]
        return next((pair for pair in pairs if (right[pair[0]] != right[pair[1]]) == wanted), pairs[0])

    def _criticism(self, seating: Seating, agent: int, solutions: Sequence[str]) -> Demonstration:
        """Return a turn of criticism: the check of each solution, those that fail once more as targets."""
        seen = agent_prompt(seating, [self._entries(seating, solutions, 0)], agent, 1, _NO_LIMIT)
        checks = self._checks(seating, [turn.agent for turn in seen.compared], solutions)
        targets = "".join(f"<target>{h}</target>{said}" for h, said in self._faults(seating, checks))
        reply = self._review(seating, checks, vote=seen.due).replace(
            "</evaluation>", f"{targets}</evaluation>"
        )
        turn = self._weighted(seen.messages, reply)
        return replace(turn, weights=(*((*m.span(), 3.0) for m in _TARGET.finditer(reply)), *turn.weights))

    def _revision(self, seating: Seating, agent: int, solutions: Sequence[str]) -> Demonstration:
        """Return a revision: what is right stays, of the rest a right solution shown is taken over."""
        others = range(len(solutions))
        criticism = [
            self._faults(seating, self._checks(seating, [a for a in others if a != critic], solutions))
            for critic in others
        ]
        entries = [
            render_entry(
                seating.texts,
                PublicTurn(
                    TurnId(critic, 1),
                    seating.handles[critic],
                    None,
                    "\n".join(f"{handle}: {said.strip()}" for handle, said in faults) or None,
                    critic=True,
                ),
            )
            for critic, faults in enumerate(criticism)
        ]
        past = [self._entries(seating, solutions, 0), entries]
        seen = agent_prompt(seating, past, agent, 2, _NO_LIMIT)
        good = [s for s in solutions if self._is_right(seating.problem, s)]
        own = solutions[agent] if solutions[agent] in good else None
        if own is None and good and self._rng.random() < self._habits.adopt:
            own = self._rng.choice(good)
        reply = f"<solution>{own or self._solution(seating.problem, agent)}</solution>"
        chosen = [(*m.span(), 3.0) for m in _TAKEN_OVER.finditer(reply) if own]
        return Demonstration(seen.messages, reply, tuple(chosen))

    @staticmethod
    def _faults(seating: Seating, checks: Mapping[int, str]) -> list[tuple[str, str]]:
        """Return the handles of those whose check fails, each with the check."""
        return [(seating.handles[agent], text) for agent, text in checks.items() if " right" not in text]

    def _round(self, seating: Seating, agent: int) -> list[str]:
        """Return a solution for each agent, so that the judge's pair is decidable as often as configured."""
        wanted = self._rng.random() < self._habits.decidable
        agents = range(len(seating.handles))
        solutions: list[str] = []
        for _ in range(12):
            solutions = [self._shown(seating.problem, other) for other in agents]
            peers = (peer for peer in speakers(self._config, 0) if peer != agent)
            verdicts = {self._is_right(seating.problem, solutions[peer]) for peer in peers}
            if (len(verdicts) == 2) == wanted:
                break
        return solutions

    def _shown(self, problem: Problem, agent: int) -> str:
        """Return a solution as others would see it; wrong ones are now and then made to look right."""
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
        return self._family.write_solution(problem, self._attempt(problem, agent, right=right))

    def _attempt(self, problem: Problem, agent: int, *, right: float | None = None) -> Any:
        habits = self._habits
        chance = habits.right[agent % len(habits.right)] if right is None else right
        lure = habits.lure[agent % len(habits.lure)]
        return self._family.attempt(problem, self._rng, right=chance, lure=lure)

    def _entries(self, seating: Seating, solutions: Sequence[str], round_: int) -> list[Any]:
        turns = (
            PublicTurn(TurnId(agent, round_), seating.handles[agent], text)
            for agent, text in enumerate(solutions)
        )
        return [render_entry(seating.texts, turn) for turn in turns]

    def _judging(
        self,
        seating: Seating,
        agents: Sequence[int],
        solutions: Mapping[int, str] | Sequence[str],
        *,
        drill: bool = False,
        vote: bool = True,
    ) -> str:
        """Return the evaluation of these agents' solutions, and their comparison if there is a vote. The
        checks of a drill are all true.
        """
        return self._review(seating, self._checks(seating, agents, solutions, drill=drill), vote=vote)

    def _checks(
        self,
        seating: Seating,
        agents: Sequence[int],
        solutions: Mapping[int, str] | Sequence[str],
        *,
        drill: bool = False,
    ) -> dict[int, str]:
        """Return the check of each of these agents' solutions."""
        habits, rng = self._habits, self._rng
        return {
            agent: self._check(
                seating.problem, solutions[agent], lured=not drill and rng.random() < habits.misjudge
            )
            for agent in agents
        }

    def _review(self, seating: Seating, checks: Mapping[int, str], *, vote: bool) -> str:
        """Return the checks as an evaluation, and the comparison that follows from them."""
        handles, rng = seating.handles, self._rng
        lines = "".join(f"{handles[agent]}:{text} " for agent, text in checks.items())
        order = sorted(checks, key=lambda agent: (" right" not in checks[agent], rng.random()))
        ranking = " > ".join(handles[agent] for agent in order)
        comparison = f"<comparison>{ranking}</comparison>" if vote else ""
        return f"<evaluation>{lines}</evaluation>{comparison}"

    def _drill(self, seating: Seating, agent: int) -> Demonstration:
        problem, rng = seating.problem, self._rng
        seen = agent_prompt(seating, [], agent, 0, _NO_LIMIT)
        text = ""
        for _ in range(3):
            first = rng.random() < 0.5
            rights = (first, not first) if rng.random() < 0.85 else (first, first)
            agents = rng.sample(range(len(seating.handles)), 2)
            solutions = dict(zip(agents, (self._drilled(problem, right) for right in rights), strict=True))
            text += self._judging(seating, agents, solutions, drill=True)
        spans = [(*m.span(), 1.0) for pattern in (_SUM, _VERDICT, _BETTER) for m in pattern.finditer(text)]
        return Demonstration(seen.messages, text, tuple(spans), base_weight=0.0)

    def _drilled(self, problem: Problem, right: bool) -> str:
        tried = self._family.attempt(problem, self._rng, right=float(right), lure=0.0)
        return self._family.write_solution(problem, tried if right else self._maybe_invented(problem, tried))

    def _weighted(self, messages: tuple[Message, ...], reply: str) -> Demonstration:
        """Return the demonstration with the tokens that decide a judgment weighted up."""
        start = reply.index("<evaluation>")
        spans = [(*m.span(), weight) for pattern, weight in _WEIGHTS for m in pattern.finditer(reply, start)]
        return Demonstration(messages, reply, tuple(spans))

    def _is_right(self, problem: Problem, solution: str) -> bool:
        return " right" in self._check(problem, solution)
