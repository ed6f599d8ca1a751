"""Our learner's step beside that of TRL's GRPOTrainer: the same Qwen3, rows, loss and optimizer; one thread.

The rows are those of ``benchmarks/rows.py``. All lengths are divided by ``--shrink``: at an eighth, attention
has about the share of this small model's work that it has of Qwen3-8B's at full length.

TRL trains in its own loop: its default of 8 rows a pass, gradients accumulated over all rows of a step,
prompts padded on the left and completions on the right to the longest of the step. A pass of ours reads at
most as many tokens as one of theirs, padding included. Both sides are float32 with sdpa attention, and keep
their activations, which is faster than ``gradient_checkpointing`` (TRL's default) and larger;
``--checkpointing`` turns that on, on both sides. TRL's head leaves out prompts and padding on a GPU alone;
here it does so on a CPU too, as ours does. Seconds are CPU seconds of a step, its optimizer update included;
the two sides take turns, so that other work on the machine hits both. Bytes are those of the weights, the
gradients, AdamW's moments and every tensor that a step makes, at their fullest.

``packing_*`` is a second yardstick, without a clock: which part of the rows' tokens goes through the layers,
at full length and all rows at once, by our packing and by that of TRL's AsyncGRPOTrainer, which needs GPUs
to train.

    OMP_NUM_THREADS=1 .venv-bench/bin/python benchmarks/learner_vs_trl.py --json learner_vs_trl.json
"""

from __future__ import annotations

import copy
import sys
import time
import warnings
import weakref
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from report import Figure, parser, report
from rows import SHAPES, TEMPERATURE, VOCABULARY, debate_rows, rows_of
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only
from transformers import Qwen3Config, Qwen3ForCausalLM

from debate_rl.warm_start.tokenizer import build_tokenizer
from learner import LearnerConfig
from learner.types import Row
from learner.update.batches import collate, pack
from learner.update.forward import action_logprobs
from learner.update.learner import Learner

LR, EPS = 1e-5, 1e-8
ROWS_A_PASS = 8
GOALS = {"plain": 1.2, "debate": 3.0, "debate_n5": 4.0, "debate_long_completion": 2.2}
"""Cases, and how many times faster than TRL's our step is to be."""


class LiveBytes(TorchDispatchMode):
    """Count the bytes of all tensors made inside: ``live`` now, ``peak`` at most so far.

    What a model holds is not counted, however it is looked at: a view of a weight is no new tensor.
    """

    def __init__(self, model: torch.nn.Module | None = None) -> None:
        super().__init__()
        self.live = self.peak = 0
        held = () if model is None else (*model.parameters(), *model.buffers())
        self._seen = {tensor.untyped_storage()._cdata for tensor in held}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        tree_map_only(torch.Tensor, self._count, result)
        return result

    def _count(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key not in self._seen:
            self._seen.add(key)
            self.live += size
            self.peak = max(self.peak, self.live)
            weakref.finalize(storage, self._free, key, size)

    def _free(self, key: int, size: int) -> None:
        self._seen.discard(key)
        self.live -= size


@dataclass(frozen=True, slots=True)
class Step:
    """CPU seconds and loss of one step."""

    seconds: float
    loss: float


def main() -> None:
    """Print the table; exit code 1 where a goal is missed."""
    options = parser(str(__doc__).partition("\n")[0])
    options.add_argument("--repeats", type=int, default=5, help="timed steps of each side")
    options.add_argument("--shrink", type=int, default=8, help="what all lengths are divided by")
    options.add_argument("--cases", nargs="*", choices=GOALS, default=list(GOALS))
    options.add_argument("--checkpointing", action="store_true", help="keep no activations, on both sides")
    args = options.parse_args()
    if find_spec("trl") is None:
        sys.exit("this needs TRL: make bench, then .venv-bench/bin/python benchmarks/learner_vs_trl.py")
    torch.set_num_threads(1)
    figures: list[Figure] = []
    for name in args.cases:
        figures += compared(name, rows_of(name, args.shrink), args.repeats, checkpointing=args.checkpointing)
    apart = [figure.value for figure in figures if figure.name.endswith("loss_difference")]
    figures += [Figure("loss_difference", max(apart, default=0.0), "loss", len(apart), None, 1e-5), *packed()]
    report("our learner and TRL's; low and high bound what passes", figures, args.json)
    missed = [f.name for f in figures if f.value > (f.high or np.inf) or f.value < (f.low or -np.inf)]
    sys.exit(f"missed: {', '.join(missed)}" if missed else 0)


def build_model() -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    shape = {"hidden_size": 256, "num_hidden_layers": 8, "intermediate_size": 768, "head_dim": 64}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True}
    return Qwen3ForCausalLM(Qwen3Config(**shape, **heads, vocab_size=VOCABULARY)).eval()


@torch.no_grad()
def with_old(rows: list[Row], model: Any) -> list[Row]:
    """Return the rows with log-probabilities of a policy near the model's: some ratios are clipped."""
    noise = np.random.default_rng(1)
    found = [action_logprobs(model, collate([one]))[0][0].numpy() for one in rows]
    return [
        replace(one, sampling_logprobs=(old + 0.2 * noise.normal(size=len(old))).astype(np.float32))
        for one, old in zip(rows, found, strict=True)
    ]


# The two sides ------------------------------------------------------------------------------------


def compared(name: str, rows: list[Row], repeats: int, *, checkpointing: bool) -> list[Figure]:
    """Return the figures of one case; the first step of both sides does not count, the last counts bytes."""
    model = build_model()
    rows = with_old(rows, model)
    ours = Ours(copy.deepcopy(model), rows, share=name != "plain", checkpointing=checkpointing)
    with TemporaryDirectory() as folder:
        theirs = TheirLoop(model, rows, Path(folder), repeats, ours, checkpointing=checkpointing)
    steps = list(zip(ours.steps, theirs.steps, strict=True))
    ratios = sorted(b.seconds / a.seconds for a, b in steps[1:-1])
    memory = ours.peak / theirs.peak
    apart = max(abs(a.loss - b.loss) for a, b in steps)
    return [
        Figure(f"learner_{name}_seconds", median(a.seconds for a, _ in steps[1:-1]), "CPU s", repeats),
        Figure(f"learner_{name}_seconds_trl", median(b.seconds for _, b in steps[1:-1]), "CPU s", repeats),
        Figure(f"learner_{name}_speedup", median(ratios), "times", repeats, GOALS[name]),
        Figure(f"learner_{name}_memory_ratio", memory, "of TRL's", 1, None, 0.7),
        Figure(f"learner_{name}_loss_difference", apart, "loss", len(steps), None, 1e-5),
    ]


class Ours:
    """Our learner, its steps, and the bytes of the last one."""

    def __init__(self, model: Any, rows: list[Row], *, share: bool, checkpointing: bool) -> None:
        settings = {"lr": LR, "warmup_steps": 0, "old_logprobs": "sampling", "adam_eps": EPS}
        settings |= {"share_prefixes": share, "micro_batch_tokens": tokens_a_pass(rows)}
        settings |= {"gradient_checkpointing": checkpointing, "betas": (0.9, 0.95)}
        with warnings.catch_warnings(action="ignore"):  # no warm-up, as nothing is to be learnt
            self.learner = Learner(model, LearnerConfig.model_validate(settings))
        self.model, self.rows, self.peak = model, rows, 0
        self.steps: list[Step] = []

    def step(self, *, counted: bool) -> None:
        """Learn once from the rows, timed."""
        with ExitStack() as stack:
            live = stack.enter_context(LiveBytes(self.model)) if counted else None
            started = time.process_time()
            loss = self.learner.step(self.rows)["loss"]
            self.steps.append(Step(time.process_time() - started, loss))
        self.peak = peak_of(live, self.model)


def peak_of(live: LiveBytes | None, model: Any) -> int:
    """Return the bytes of a step with those of the weights and of AdamW's moments."""
    return live.peak + 3 * sum(weight.nbytes for weight in model.parameters()) if live else 0


class TheirLoop:
    """TRL's steps in its own loop, and the bytes of the last one; before each of them we do one of ours."""

    def __init__(
        self, model: Any, rows: list[Row], folder: Path, repeats: int, ours: Ours, *, checkpointing: bool
    ) -> None:
        trl, transformers, datasets = map(import_module, ("trl", "transformers", "datasets"))
        utils: Any = import_module("trl.trainer.utils")
        utils._use_triton = lambda _: True  # a head for completions alone
        self.model, self.ours, self.last, self.peak = model, ours, repeats + 1, 0
        self.steps: list[Step] = []
        loop = self

        class Trainer(trl.GRPOTrainer):
            def _generate_and_score_completions(self, inputs: Any) -> dict[str, Tensor]:
                return padded_apart(rows)

            def _compute_loss(self, model: Any, inputs: Any) -> Tensor:
                loss = super()._compute_loss(model, inputs)
                loop.loss += float(loss.detach())
                return loss

        class Turns(transformers.TrainerCallback):
            def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                loop.begin(state.global_step)

            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                loop.end()

        settings = trl.GRPOConfig(
            output_dir=str(folder),
            use_cpu=True,
            bf16=False,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
            logging_steps=10_000,
            max_steps=repeats + 2,
            learning_rate=LR,
            lr_scheduler_type="constant",
            adam_beta2=0.95,
            adam_epsilon=EPS,
            temperature=TEMPERATURE,
            loss_type="grpo",
            epsilon_high=0.2,
            gradient_checkpointing=checkpointing,
            per_device_train_batch_size=ROWS_A_PASS,
            gradient_accumulation_steps=len(rows) // ROWS_A_PASS,
            num_generations=ROWS_A_PASS,
        )
        trainer = Trainer(
            model=model,
            args=settings,
            reward_funcs=lambda completions, **_: [0.0] * len(completions),
            train_dataset=datasets.Dataset.from_list([{"prompt": " 1"}] * len(rows)),
            processing_class=build_tokenizer([" 1"]),
            callbacks=[Turns()],
        )
        trainer.train()

    def begin(self, number: int) -> None:
        """Do a step of ours, and start the clock of theirs."""
        self.ours.step(counted=number == self.last)
        self.live = LiveBytes(self.model) if number == self.last else None
        if self.live is not None:
            self.live.__enter__()
        self.loss, self.started = 0.0, time.process_time()

    def end(self) -> None:
        """Note a step of theirs."""
        self.steps.append(Step(time.process_time() - self.started, self.loss))
        if self.live is not None:
            self.live.__exit__(None, None, None)
        self.peak = peak_of(self.live, self.model)


def padded_apart(rows: list[Row]) -> dict[str, Tensor]:
    """Return a step's rows as TRL lays them out: prompts padded on the left, completions on the right."""
    starts = [int(one.action_mask.argmax()) for one in rows]
    before = [one.input_ids[:start] for one, start in zip(rows, starts, strict=True)]

    def after(field: str, kind: Any = np.float32) -> Tensor:
        parts = [getattr(one, field)[start:] for one, start in zip(rows, starts, strict=True)]
        return pad([part.astype(kind) for part in parts])

    return {
        "prompt_ids": pad(before, left=True),
        "prompt_mask": pad([np.ones_like(one) for one in before], left=True),
        "completion_ids": after("input_ids", np.int64),
        "completion_mask": after("action_mask", np.int64),
        "advantages": after("advantages"),
        "old_per_token_logps": after("sampling_logprobs"),
        "num_items_in_batch": torch.tensor(sum(int(one.action_mask.sum()) for one in rows)),
    }


def tokens_a_pass(rows: list[Row]) -> int:
    """Return the tokens of a pass of TRL's, padding included; ours may read as many in one."""
    return ROWS_A_PASS * sum(padded_apart(rows)[name].shape[1] for name in ("prompt_ids", "completion_ids"))


def pad(parts: list[NDArray[Any]], *, left: bool = False) -> Tensor:
    """Return (B, T) with zeros at the end, or at the beginning."""
    longest = max(map(len, parts))
    return torch.from_numpy(
        np.stack([np.pad(one, (longest - len(one), 0) if left else (0, longest - len(one))) for one in parts])
    )


# The second yardstick -----------------------------------------------------------------------------


def packed() -> list[Figure]:
    """Return which part of the tokens of debates' rows the two packings send through the layers."""
    tree_row = import_module("trl.experimental.async_grpo.packing").TreeRow
    figures: list[Figure] = []
    for name, shape in SHAPES.items():
        rows = debate_rows(replace(shape, shrink=1, debates=4))
        whole = sum(len(one.input_ids) for one in rows)
        tree = tree_row()
        for one in rows:
            fields = {"input_ids": one.input_ids, "completion_mask": one.action_mask}
            tree.add({key: torch.from_numpy(value) for key, value in fields.items()} | {"group_id": 0})
        ours = len(pack([one.input_ids for one in rows]).tokens)
        figures += [
            Figure(f"packing_{name}", ours / whole, "of the tokens", len(rows)),
            Figure(f"packing_{name}_trl", len(tree.tokens) / whole, "of the tokens", len(rows)),
        ]
    return figures


if __name__ == "__main__":
    main()
