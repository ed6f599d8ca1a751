"""Supervised warm start on demonstrations: cross-entropy on the replies, with Muon and AdamW."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from debate.seeds import derive_seed
from debate_rl.config.warm_start import KINDS, kinds_of_turns

if TYPE_CHECKING:
    from torch import Tensor

    from debate import Message, Problem
    from debate_rl.config import Config
    from debate_rl.warm_start.demonstrations import Demonstration, Kind
    from envs import Environment

Encode: TypeAlias = "Callable[[Sequence[Message]], Sequence[int]]"
"""Converts messages to the token ids of the prompt, up to the start of the reply."""
ADAMW_LR = 3e-3
"""Peak learning rate of embeddings and norms."""
MUON_LR = 0.02
"""Peak learning rate of the matrices."""


Batch: TypeAlias = "tuple[Tensor, Tensor]"
"""Right-padded tokens (B, L), and their loss weights (B, L), which are 0 on prompts and padding."""


def warm_start(
    model: Any,
    tokenizer: Any,
    config: Config,
    environment: Environment,
    *,
    encode: Encode,
    advance: Callable[[str, float, int], None] = lambda *_: None,
) -> float:
    """Train the model in place on demonstrations of the environment's family, and return the last loss.

    ``encode`` must be the function of the policy that will use the model, so that prompts are the same.
    ``advance`` is called with a name, the steps done (starting at 0) and the number of steps. Muon trains the
    matrices of the blocks, and AdamW all other parameters [Jordan et al. 2024]. The learning rate warms up
    over 20 steps and decays linearly to a tenth.
    """
    import torch

    steps = config.warm_start.steps
    rng = Random(derive_seed(config.seed, "warm start"))
    named = list(model.named_parameters())
    matrices = [p for name, p in named if p.dim() == 2 and "embed" not in name]
    rest = [p for name, p in named if p.dim() != 2 or "embed" in name]
    optimizers = (
        torch.optim.Muon(matrices, lr=MUON_LR, weight_decay=0.01, momentum=0.95),
        torch.optim.AdamW(rest, lr=ADAMW_LR, betas=(0.9, 0.98), weight_decay=0.0),
    )
    loss = torch.zeros(())
    advance("warm start", 0, steps)
    for step, batches in enumerate(_steps(Encoder(tokenizer, encode), config, environment, rng)):
        factor = min(1.0, (step + 1) / 20) * (0.1 + 0.9 * (1 - step / steps))
        for optimizer, peak in zip(optimizers, (MUON_LR, ADAMW_LR), strict=True):
            for group in optimizer.param_groups:
                group["lr"] = peak * factor
        loss = sum((_loss(model, *batch) for batch in batches), torch.zeros(()))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        advance("warm start", step + 1, steps)
    return loss.item()


def _steps(encoder: Encoder, config: Config, environment: Environment, rng: Random) -> Iterator[list[Batch]]:
    """Yield the batches of each step, one per kind of turn."""
    from debate_rl.warm_start.demonstrations import Demonstrator
    from envs.families import FAMILIES

    settings = config.warm_start
    demonstrator = Demonstrator(config.env.kind, config.debate, settings, rng)
    if settings.levels is not None:
        environment = FAMILIES[config.env.kind].of_levels(settings.levels)
    need = settings.solve_steps * settings.solve_batch + settings.debate_steps * sum(settings.batch)
    problems = _pool(environment, config, min(need, 20_000))

    def batch(kind: Kind, size: int, *, only_right: bool = False) -> Batch:
        shown = [demonstrator.show(kind, rng.choice(problems), only_right=only_right) for _ in range(size)]
        return encoder.batch(shown)

    for _ in range(settings.solve_steps):
        yield [batch("solve", settings.solve_batch, only_right=True)]
    held = kinds_of_turns(config.debate)
    sizes = [pair for pair in zip(KINDS, settings.batch, strict=True) if pair[0] in held and pair[1]]
    for _ in range(settings.debate_steps):
        yield [batch(kind, size) for kind, size in sizes]


def _pool(environment: Environment, config: Config, most: int) -> tuple[Problem, ...]:
    """Return up to ``most`` problems of the training split, or fewer if the family is small."""
    from envs import DataError

    seed = derive_seed(config.seed, "warm start problems")
    while True:
        try:
            return environment.problems(split=config.env.split, limit=most, seed=seed)
        except DataError:
            if most < 32:
                raise
            most //= 2


class Encoder:
    """Converts demonstrations to padded tokens and weights."""

    def __init__(self, tokenizer: Any, encode: Encode) -> None:
        self._encode = encode
        self._backend = tokenizer.backend_tokenizer

    def batch(self, demonstrations: Sequence[Demonstration]) -> Batch:
        """Return a batch of demonstrations. Padding has id 0 and weight 0."""
        import torch

        rows = [self._row(demonstration) for demonstration in demonstrations]
        length = max(len(tokens) for tokens, _ in rows)
        tokens = [ids + [0] * (length - len(ids)) for ids, _ in rows]
        weights = [w + [0.0] * (length - len(w)) for _, w in rows]
        return torch.tensor(tokens), torch.tensor(weights)

    def _row(self, shown: Demonstration) -> tuple[list[int], list[float]]:
        prompt = self._encode(shown.messages)
        reply = self._backend.encode(shown.reply, add_special_tokens=False)
        weights = [shown.base_weight] * len(shown.reply)
        for start, end, weight in shown.weights:
            weights[start:end] = [weight] * (end - start)
        of_tokens = [max(weights[start:end], default=0.0) for start, end in reply.offsets]
        return [*prompt, *reply.ids], [0.0] * len(prompt) + of_tokens


def _loss(model: Any, tokens: Tensor, weights: Tensor) -> Tensor:
    """Return the weighted mean cross-entropy of the replies, in nats."""
    import torch

    weights = weights[:, 1:]
    first = int((weights > 0).any(dim=0).nonzero()[0])  # all weights before this column are 0
    tokens = tokens.to(model.device)
    hidden = model.base_model(input_ids=tokens[:, :-1], use_cache=False).last_hidden_state[:, first:]
    logits = model.get_output_embeddings()(hidden)
    targets, weights = tokens[:, 1 + first :], weights[:, first:].to(model.device)
    losses = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    return (losses * weights.flatten()).sum() / weights.sum()
