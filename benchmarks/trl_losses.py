"""Our losses beside TRL's on the same random rows and the same tiny model: values, gradients, differences.

Prompts and completions differ in length, some tokens in the middle of a completion do not count, advantages
differ by token, and ratios go beyond the clip range on both sides. TRL pads prompts on the left and reads its
log-probabilities through a head of its own, so two ways from rows to a loss are compared, not one formula.
TRL's default also multiplies the KL by the ratio [DeepSeek-V3.2]; that is off here, as ours is GRPO's own KL.
TRL's bound for cispo is the weight itself, ours is 1 + eps_hi. gspo is compared on rows of one stream with
one advantage and one importance weight each (ours is the paper's GSPO-token, which tells tokens apart; TRL's
is GSPO), and its eps is small, or nothing would be clipped. TRL has no dual clip.
Ends with exit code 1 where a difference is beyond the tolerance.

    make bench && .venv-bench/bin/python benchmarks/trl_losses.py --json trl_losses.json
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from report import Figure, parser, report
from torch import Tensor

from debate.types import TurnId
from debate_rl.config.models import ModelConfig, TinyConfig
from debate_rl.models import load_model
from learner.losses import LOSSES, LossConfig, LossInputs, Totals
from learner.losses.corrections import entropy_bonus, truncated_importance
from learner.types import Row
from learner.update.batches import MicroBatch, collate
from learner.update.forward import action_logprobs

SAME = {"grpo": "grpo", "dr_grpo": "dr_grpo", "dapo": "dapo", "gspo": "grpo", "cispo": "cispo"}
"""Our loss to TRL's ``loss_type``; gspo is TRL's grpo with a ratio of the whole sequence."""
ROWS, MOST_TOKENS, TEMPERATURE = 24, 32, 0.9
EPS, EPS_HI = 0.2, 0.28
GSPO_EPS, GSPO_EPS_HI = 0.02, 0.03
LOSS_TOLERANCE, GRADIENT_TOLERANCE = 1e-5, 1e-4
"""Float32 leaves about 1e-7 of the loss, and of the gradient's length."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What is added to a loss: beta * KL, a bonus for entropy, importance weights up to a cap (0: none)."""

    beta: float = 0.0
    bonus: float = 0.0
    cap: float = 0.0


TERMS = {"beta 0": Terms(), "beta 0.1": Terms(beta=0.1), "entropy and TIS": Terms(bonus=0.05, cap=1.2)}


@dataclass(frozen=True, slots=True)
class Case:
    """Rows with the log-probabilities of earlier weights, a reference and the sampler, by row and token."""

    rows: list[Row]
    old: list[Tensor]
    ref: list[Tensor]
    sampling: list[Tensor]


def main() -> None:
    """Print the table."""
    args = parser(str(__doc__).partition("\n")[0]).parse_args()
    if find_spec("trl") is None:
        sys.exit("this needs TRL: make bench, then .venv-bench/bin/python benchmarks/trl_losses.py")
    tiny = ModelConfig(tiny=TinyConfig(hidden_size=64, context_tokens=128), device="cpu")
    model, tokenizer = load_model(tiny, vocabulary=[f" {n}" for n in range(40)], seed=1)
    case = random_case(model, len(tokenizer))
    figures: list[Figure] = []
    with TemporaryDirectory() as folder:
        trainer = trl_trainer(model, tokenizer, Path(folder))
        for name in SAME:
            same = by_row(case) if name == "gspo" else case
            for title, terms in TERMS.items():
                figures += compared(f"{name}, {title}", name, terms, same, model, trainer)
    report("our losses and TRL's; low and high bound the difference that passes", figures, args.json)
    wrong = [f.name for f in figures if f.high is not None and not f.value <= f.high]
    sys.exit(f"beyond the tolerance: {', '.join(wrong)}" if wrong else 0)


def random_case(model: Any, vocabulary: int) -> Case:
    rng = np.random.default_rng(0)
    rows = [random_row(rng, vocabulary, number) for number in range(ROWS)]
    with torch.no_grad():
        logprobs = action_logprobs(model, collate(rows))[0]
    noise = torch.Generator().manual_seed(0)
    tables = [logprobs + 0.3 * torch.randn(logprobs.shape, generator=noise) for _ in range(3)]
    lengths = [len(row.input_ids) for row in rows]
    return Case(rows, *([t[:n] for t, n in zip(table, lengths, strict=True)] for table in tables))


def by_row(case: Case) -> Case:
    """Return the case with one advantage and one distance from the sampler for all tokens of a row."""
    rows = [replace(r, advantages=r.action_mask * r.advantages[r.action_mask.argmax()]) for r in case.rows]
    sampling = [old - (old - s)[-1] for old, s in zip(case.old, case.sampling, strict=True)]
    return replace(case, rows=rows, sampling=sampling)


def random_row(rng: np.random.Generator, vocabulary: int, number: int) -> Row:
    prompt, completion = int(rng.integers(3, 12)), int(rng.integers(2, MOST_TOKENS))
    length = prompt + completion
    mask = np.arange(length) >= prompt
    if number % 3 == 0 and completion > 6:
        mask[prompt + 2 : prompt + 4] = False  # what was forced and not sampled
    return Row(
        input_ids=rng.integers(0, vocabulary, length),
        action_mask=mask,
        sampling_logprobs=np.zeros(length, np.float32),
        advantages=np.where(mask, rng.normal(size=length), 0).astype(np.float32),
        stream=mask.astype(np.int8),
        group_id="random",
        policy_version=0,
        turn=TurnId(0, number),
        temperature=TEMPERATURE,
    )


def compared(title: str, name: str, terms: Terms, case: Case, model: Any, trainer: Any) -> list[Figure]:
    """Return both values, and the differences of the values and of the gradients."""
    ours, our_gradient = with_gradient(model, our_loss(name, terms, case, model))
    theirs, their_gradient = with_gradient(model, trl_loss(name, terms, case, trainer))
    apart = float((our_gradient - their_gradient).norm() / their_gradient.norm())
    return [
        Figure(f"{title}: ours", ours, "loss", ROWS),
        Figure(f"{title}: TRL", theirs, "loss", ROWS),
        Figure(f"{title}: difference", abs(ours - theirs), "loss", ROWS, 0.0, LOSS_TOLERANCE),
        Figure(f"{title}: gradients apart", apart, "of its length", ROWS, 0.0, GRADIENT_TOLERANCE),
    ]


def with_gradient(model: Any, loss: Tensor) -> tuple[float, Tensor]:
    model.zero_grad()
    loss.backward()
    gradient = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    return loss.item(), gradient


def clip_of(name: str) -> tuple[float, float]:
    return (GSPO_EPS, GSPO_EPS_HI) if name == "gspo" else (EPS, EPS_HI)


def our_loss(name: str, terms: Terms, case: Case, model: Any) -> Tensor:
    batch: MicroBatch = collate(case.rows)
    length = batch.input_ids.shape[1]
    logprobs, entropy = action_logprobs(model, batch, entropy_gradient=terms.bonus > 0)
    inputs = LossInputs(
        logprobs=logprobs,
        old_logprobs=padded(case.old, length),
        sampling_logprobs=padded(case.sampling, length),
        ref_logprobs=padded(case.ref, length),
        advantages=batch.advantages,
        mask=batch.mask,
        stream=batch.stream,
    )
    inputs = inputs if terms.beta else replace(inputs, ref_logprobs=None)
    if terms.cap:
        inputs = replace(inputs, advantages=truncated_importance(inputs, terms.cap)[0])
    eps, eps_hi = clip_of(name)
    config = LossConfig(eps=eps, eps_hi=eps_hi, beta=terms.beta, max_tokens=MOST_TOKENS)
    return LOSSES[name](inputs, config).loss + entropy_bonus(entropy, terms.bonus, Totals.of(batch.mask))


def trl_trainer(model: Any, tokenizer: Any, folder: Path) -> Any:
    """Return a trainer of TRL around the model; nothing is generated or trained with it."""
    trl, datasets = import_module("trl"), import_module("datasets")
    settings = trl.GRPOConfig(
        output_dir=str(folder),
        use_cpu=True,
        bf16=False,
        report_to="none",
        temperature=TEMPERATURE,
        use_bias_correction_kl=False,
        max_completion_length=MOST_TOKENS,
        per_device_train_batch_size=8,
        num_generations=8,
    )
    trainer = trl.GRPOTrainer(
        model=model,
        args=settings,
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        train_dataset=datasets.Dataset.from_list([{"prompt": " 1"}]),
        processing_class=tokenizer,
    )
    trainer.model.eval()  # no division by gradient accumulation steps
    return trainer


def trl_loss(name: str, terms: Terms, case: Case, trainer: Any) -> Tensor:
    rows = case.rows
    starts = [int(row.action_mask.argmax()) for row in rows]
    ids = [torch.from_numpy(row.input_ids) for row in rows]
    parts = list(zip(ids, starts, strict=True))
    longest = max(len(row) - start for row, start in parts)

    def completions(values: list[Tensor]) -> Tensor:
        return padded([value[start:] for value, start in zip(values, starts, strict=True)], longest)

    trainer.loss_type, trainer.beta = SAME[name], terms.beta
    trainer.importance_sampling_level = "sequence" if name == "gspo" else "token"
    trainer.epsilon_low, trainer.epsilon_high = clip_of(name)
    trainer.epsilon_high += name == "cispo"
    trainer.entropy_coef, trainer._entropy_bonus_enabled = terms.bonus, terms.bonus > 0
    trainer.use_vllm = trainer.vllm_importance_sampling_correction = terms.cap > 0
    weights = [(old - s).exp().clamp(max=terms.cap) for old, s in zip(case.old, case.sampling, strict=True)]
    return trainer._compute_loss(
        trainer.model,
        {
            "prompt_ids": padded([row[:start] for row, start in parts], max(starts), left=True),
            "prompt_mask": padded([torch.ones(start).long() for start in starts], max(starts), left=True),
            "completion_ids": completions(ids),
            "completion_mask": completions([torch.ones(len(row)).long() for row in ids]),
            "tool_mask": completions([torch.from_numpy(row.action_mask).long() for row in rows]),
            "advantages": completions([torch.from_numpy(row.advantages) for row in rows]),
            "old_per_token_logps": completions(case.old),
            "ref_per_token_logps": completions(case.ref),
            "importance_sampling_ratio": completions(weights),
            "num_items_in_batch": torch.tensor(sum(int(row.action_mask.sum()) for row in rows)),
        },
    )


def padded(values: list[Tensor], length: int, *, left: bool = False) -> Tensor:
    """Return (B, length) with zeros at the end, or at the beginning."""
    rows = [torch.zeros(length, dtype=value.dtype) for value in values]
    for row, value in zip(rows, values, strict=True):
        row[length - len(value) if left else 0 :][: len(value)] = value
    return torch.stack(rows)


if __name__ == "__main__":
    main()
