"""The canary: check after every update that the engine computes with the weights of the learner.

The engine answers a few fixed requests. Its prompts, cache, head, digests of weights and log-probabilities
are compared with the learner's, and the first difference is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from debate.hold import turn_request
from debate.prompting.fitting import context_budget
from debate.prompting.prompt import agent_prompt
from debate.prompting.seating import seat_debate
from debate.seeds import derive_seed
from debate.types import Completion, Message, Policy, Problem, SampleRequest, TurnId
from debate_rl.config import Config
from debate_rl.inference.engine_report import Digest, EngineReport, digest
from debate_rl.inference.vllm_weights import weights_as_computed
from learner.types import Row
from learner.update.batches import collate

REQUESTS, TOKENS = 4, 16
BOUNDS = {torch.float32: 1e-4, torch.float16: 0.05, torch.bfloat16: 0.1}
"""Bounds of the mean distance of log-probabilities: several times the distance that rounding causes, which is
.013 to .03 in bfloat16."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a comparison: figures for metrics.jsonl, and the fault, if any."""

    metrics: dict[str, float] = field(default_factory=dict)
    fault: str | None = None


def canary_requests(config: Config, problems: Sequence[Problem], policy: Policy) -> tuple[SampleRequest, ...]:
    """Return short requests with prompts of round 0 of the first problems, at the debate's temperatures."""
    debate = config.debate.model_copy(update={"seats": ()})  # at every seat, the policy is compared
    requests: list[SampleRequest] = []
    for number in range(REQUESTS):
        seed = derive_seed(config.seed, "canary", number)
        seating, agent = (
            seat_debate(problems[number % len(problems)], debate, seed),
            number % debate.num_agents,
        )
        prompt = agent_prompt(seating, [], agent, 0, context_budget(policy, config.debate))
        request = turn_request(seating, prompt, TurnId(agent, 0), seed, f"canary {number}")
        tokens = min(TOKENS, config.debate.max_tokens)
        requests.append(replace(request, max_tokens=tokens, stop=(), thinking_tokens=0))
    return tuple(requests)


class Canary:
    """Compares an engine's reports on ``requests`` with the model that learns.

    ``encode`` turns messages into a prompt with the learner's tokenizer. ``logprobs`` computes the learner's
    log-probabilities. ``compute`` is the numeric type of the learner's matrix products; None means the type
    of its weights. Frozen weights are read once.
    """

    def __init__(
        self,
        model: Any,
        requests: Sequence[SampleRequest],
        *,
        encode: Callable[[tuple[Message, ...]], tuple[int, ...]],
        logprobs: Callable[[Sequence[Row]], torch.Tensor],
        compute: torch.dtype | None = None,
    ) -> None:
        self.requests = tuple(requests)
        self._model, self._compute, self._logprobs = model, compute, logprobs
        self._prompts = [encode(request.messages) for request in requests]
        self._frozen: dict[str, Digest] = {}
        self._trained: dict[str, Digest] = {}

    def compare(self, *reports: EngineReport) -> Finding:
        """Return the largest distance of an engine from the learner, and the first fault."""
        dtype = getattr(torch, reports[0].dtype)
        before, self._trained = self._trained, {}
        for name, values, learns in weights_as_computed(self._model, dtype):
            if learns:
                self._trained[name] = digest(values, dtype)
            elif name not in self._frozen:
                self._frozen[name] = digest(values, dtype)
        found = [self._compared(report, dtype, before) for report in reports]
        metrics = {
            "canary/logprob_difference": max(difference for difference, _, _ in found),
            "canary/weights_compared": min(share for _, share, _ in found),
        }
        return Finding(metrics, next((fault for _, _, fault in found if fault), None))

    def _compared(
        self, report: EngineReport, dtype: torch.dtype, before: dict[str, Digest]
    ) -> tuple[float, float, str | None]:
        """Return the difference in log-probabilities, the fraction of weights compared, and the fault."""
        pairs = zip(report.completions, self.requests, strict=True)
        rows = [_row(reply, request) for reply, request in pairs]
        difference = self._difference(rows)
        bound = max(BOUNDS[kind] for kind in (dtype, self._compute or torch.float32))
        own, cached = self._frozen | self._trained, report.cached_tokens
        learns = "adapter" if any(".lora_" in name for name in self._trained) else "weights"
        fault = (
            self._wrong_reading(report)
            or _wrong_weights("base", report.digests, self._frozen, {})
            or _wrong_weights(learns, report.digests, self._trained, before)
            or (
                f"cache: {cached} tokens of a prompt came from the prefix cache of older weights"
                if cached
                else None
            )
            or (None if difference <= bound else self._wrong_logprobs(rows, difference, bound))
        )
        return difference, len(report.digests.keys() & own.keys()) / len(own), fault

    def _difference(self, rows: Sequence[Row]) -> float:
        """Return the mean absolute difference between the engine's and the learner's log-probabilities."""
        batch = collate(rows)
        return float((self._logprobs(rows) - batch.sampling_logprobs)[batch.mask].abs().mean())

    def _wrong_reading(self, report: EngineReport) -> str | None:
        if [reply.prompt_tokens for reply in report.completions] != self._prompts:
            return "template: the engine's prompts are not those of the learner's chat template and tokenizer"
        return "head: the engine rounds its logits to 16 bits" if report.rounded_head else None

    def _wrong_logprobs(self, rows: Sequence[Row], difference: float, bound: float) -> str:
        asked = [row.temperature for row in rows]
        wrong = {f"temperature {one:g} in every request": [one] * len(asked) for one in sorted({1.0, *asked})}
        wrong["each temperature applied twice"] = [one**2 for one in asked]
        for name, others in wrong.items():
            pairs = zip(rows, others, strict=True)
            if self._difference([replace(row, temperature=other) for row, other in pairs]) <= bound:
                return f"temperature: the engine's log-probabilities are those at {name}"
        return (
            f"log-probabilities are {difference:.2g} away from the learner's on average (at most {bound:g}), "
            "and neither weights nor temperature explain it"
        )


def _row(reply: Completion, request: SampleRequest) -> Row:
    ids = np.array(reply.prompt_tokens + reply.tokens, np.int64)
    start = len(reply.prompt_tokens)
    mask, logprobs = np.zeros(len(ids), np.bool_), np.zeros(len(ids), np.float32)
    mask[start:], logprobs[start:] = True, reply.logprobs
    mask[[start + index for index in reply.forced]] = False
    nothing, nobody = np.zeros(len(ids), np.float32), np.zeros(len(ids), np.int8)
    of = (request.debate, reply.policy_version, request.turn, request.temperature)
    return Row(ids, mask, logprobs, nothing, nobody, *of)


def _wrong_weights(
    what: str, found: dict[str, Digest], own: dict[str, Digest], before: dict[str, Digest]
) -> str | None:
    """Return what is wrong with the engine's weights, or None.

    The engine may have missed the update, taken only part of it, or have wrong values.
    """
    compared = own.keys() & found.keys()
    wrong = [name for name in own if name in compared and found[name] != own[name]]
    if not wrong:
        return None
    named = f"{len(wrong)} of {len(compared)} matrices: {', '.join(wrong[:3])}" + ", ..." * (len(wrong) > 3)
    changed = [name for name in own if name in compared and own[name] != before.get(name)]
    if all(found[name] == before.get(name) for name in wrong):
        taken = "nothing" if wrong == changed else "not all"
        return f"stale {what}: {taken} of the update was taken, {named}"
    if all(found[name] == (0, 0) for name in wrong):
        return f"incomplete file: the engine's {what} is empty in {named}"
    return f"wrong {what}: the engine computes with other values in {named}"
