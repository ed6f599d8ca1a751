"""Read, filter and encode the replies of a supervised run, and separate them from held-out problems."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from math import floor
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from debate import Problem
from debate.programs import output_spans
from debate.prompting.fitting import ContextBudget
from debate.prompting.prompt import agent_prompt
from debate.prompting.rendering import shot_reply
from debate.prompting.seating import prompts_of, seat_debate
from debate.prompting.texts import prompt_path
from debate.seeds import derive_seed
from debate.types import Message, TurnId
from debate_rl.config import Config
from debate_rl.config.data import SftConfig
from debate_rl.engines import prompt_settings
from debate_rl.formatting import counted
from debate_rl.inference.speech import Speech, ids_of_ends
from debate_rl.models import sketch_model
from debate_rl.runs.provenance import checksum, file_checksums, problems_checksum
from debate_rl.sampling.load_problems import Problems, further_held_out, load_held_out, without_held_out
from debate_rl.sft.examples import Example, Source, chosen_by, is_file, of_family
from debate_rl.warm_start.tokenizer import tiny_vocabulary
from envs.data.loading import normal_level, question_hash
from envs.data.records import files_of
from envs.errors import DataError, DataWarning
from learner.types import Row


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """An example as tokens: ``ids`` (L,) int32; ``learnt`` (L,) bool is True for tokens with a loss."""

    ids: NDArray[np.int32]
    learnt: NDArray[np.bool_]


def batch_rows(examples: Sequence[Encoded], version: int = 0) -> list[Row]:
    """Return the learner's rows of examples. All learnt tokens have weight 1.

    Every two rows form a debate, so that the learner can check its computation with shared prefixes.
    """
    rows: list[Row] = []
    for index, one in enumerate(examples):
        weights = one.learnt.astype(np.float32)
        row = Row(
            input_ids=one.ids.astype(np.int64),
            action_mask=one.learnt,
            sampling_logprobs=np.zeros_like(weights),
            advantages=weights,
            stream=one.learnt.astype(np.int8),
            group_id="sft",
            policy_version=version,
            turn=TurnId(0, 0),
            debate=index // 2,
        )
        rows.append(row)
    return rows


class ReplyEncoder:
    """Encodes examples with a run's prompt set, tokenizer and chat template."""

    def __init__(self, config: Config, model: Any, tokenizer: Any) -> None:
        self._debate, self._seed = config.debate, config.seed
        self._texts = prompts_of(config.debate)
        ends = ids_of_ends(model.config, model.generation_config, tokenizer)
        self._speech = Speech(tokenizer, ends=ends, **prompt_settings(config))

    @classmethod
    def of(cls, config: Config) -> ReplyEncoder:
        """Return the encoder of a configuration, without loading its model's weights."""
        vocabulary = tiny_vocabulary(config)
        return cls(config, *sketch_model(config.model, vocabulary=vocabulary, on_gpu=False))

    def encode(self, example: Example) -> Encoded:
        """Return an example as tokens. All tokens of the reply are learnt except tool outputs.

        Raise DataError with the example's location if the example cannot be formatted as a reply.
        """
        messages = example.messages or self.prompt(example)
        prompt = self._speech.encode(messages)
        try:
            reply = self._speech.reply(self.text(example), messages)
        except ValueError as error:
            raise DataError(
                f"{example.location}: {error}; set debate.thinking_tokens = 0, or use replies with thinking"
            ) from error
        text, offsets = self._speech.text.text_and_offsets(reply)
        first = np.asarray(offsets)
        learnt = np.ones(len(reply), np.bool_)
        for output in output_spans(text):
            learnt[(first >= output.start) & (first < output.end)] = False
        ids = np.array((*prompt, *reply), np.int32)
        return Encoded(ids, np.concatenate((np.zeros(len(prompt), np.bool_), learnt)))

    def prompt(self, example: Example) -> tuple[Message, ...]:
        """Return the prompt of the first round of RL, for an agent that the seed selects."""
        seed = derive_seed(self._seed, "sft", example.problem.id)
        seating = seat_debate(example.problem, self._debate, seed)
        budget = ContextBudget(None, lambda _: 0)
        return agent_prompt(seating, (), seed % self._debate.num_agents, 0, budget).messages

    def text(self, example: Example) -> str:
        """Return the reply, or the solution formatted as the prompt set requires."""
        return example.reply if example.solution is None else shot_reply(self._texts, example.solution)


@dataclass(frozen=True)
class Replies(Problems):
    """Problems with their encoded replies: ``learnt``, and ``held_back`` for the validation loss.

    ``train`` has one problem for each of ``learnt``. ``lost``: number of replies left out per filter.
    """

    learnt: tuple[Encoded, ...] = ()
    held_back: tuple[Encoded, ...] = ()
    lost: tuple[tuple[str, int], ...] = ()

    @property
    def played(self) -> tuple[Problem, ...]:
        """The problems that are evaluated."""
        return self.never_trained

    def findings(self) -> dict[str, object]:
        """Return the entries of run.json about the replies."""
        tokens = [int(one.learnt.sum()) for one in self.learnt]
        counts = {"learnt": len(self.learnt), "held_back": len(self.held_back), "left_out": dict(self.lost)}
        return super().findings() | {"replies": {**counts, "tokens": sum(tokens), "longest": max(tokens)}}

    def lines(self) -> list[str]:
        """Return the startup message about the replies."""
        sizes = sorted(int(one.learnt.sum()) for one in self.learnt)
        middle, longest = sizes[len(sizes) // 2], max(len(one.ids) for one in self.learnt)
        problems = len({problem.id for problem in self.train})
        learnt = f"{len(self.learnt):,} to {counted(problems, 'problem')}"
        lines = [
            f"replies: {learnt} to train on, {len(self.held_back)} held back; tokens: {sum(sizes):,}, "
            f"median {middle}, maximum {sizes[-1]}, with prompt {longest}"
        ]
        if self.lost:
            lines.append(f"  left out: {', '.join(f'{count:,} {why}' for why, count in self.lost)}")
        sets = [("of the run", self.held_out), *((part.name, part.problems) for part in self.more)]
        held = [f"{len(part)} {name}" for name, part in sets if part]
        return [*lines, f"problems held out: {', '.join(held) or 'none'}"]


def load_replies(config: Config) -> Replies:
    """Return the replies and held-out problems of a supervised run. Raise DataError if no reply is left."""
    lost: Counter[str] = Counter()
    examples = _chosen(_read(config, lost), config.sft, lost)
    _refuse_other_prompts(examples, config)
    examples, loaded = _without_held_out(examples, config, lost)
    pairs = _encoded(examples, config, lost)
    learnt, held_back = held_apart(pairs, config.sft.held_back, config.seed)
    known = {name: getattr(loaded, name) for name in Problems.__dataclass_fields__}
    known["train"] = tuple(example.problem for example, _ in learnt)
    known["checksums"] = _checksums(config, loaded, pairs)
    return Replies(
        **known,
        learnt=tuple(encoded for _, encoded in learnt),
        held_back=tuple(encoded for _, encoded in held_back),
        lost=tuple((why, count) for why, count in lost.items() if count),
    )


def _read(config: Config, lost: Counter[str]) -> list[Example]:
    """Return the examples of all sources; ``lost`` counts the unusable rows of data sets."""
    sft, examples = config.sft, list[Example]()
    for name in sft.data:
        source, before = Source(name, config), len(examples)
        seed = derive_seed(config.seed, "sft", name)
        levels = sft.levels or (config.env.levels if name in of_family(config.env.kind) else None)
        examples += source.read(split=sft.split, limit=sft.limit, seed=seed, levels=levels)
        if source.unusable:
            lost["without a usable solution"] += source.unusable
        if len(examples) == before:
            reason = f"; the first row: {source.first_unusable}" if source.unusable else ""
            raise DataError(f"sft.data: {name}: has no usable reply{reason}")
    return examples


def _chosen(examples: Sequence[Example], sft: SftConfig, lost: Counter[str]) -> list[Example]:
    levels = None if sft.levels is None else {normal_level(str(level)) for level in sft.levels}

    def described(example: Example) -> tuple[str, str, str]:
        other = levels is not None and example.problem.level not in levels
        return "of other levels" if other else "", question_hash(example.problem.question), example.text

    chosen = chosen_by(examples, described, sft.per_problem, lost)
    if not chosen:
        raise DataError(
            f"sft.levels = {list(sft.levels or ())}: no reply belongs to these levels; change sft.levels"
        )
    return chosen


def _refuse_other_prompts(examples: Sequence[Example], config: Config) -> None:
    """Raise DataError for a reply to another prompt set, whose format differs from that of RL."""
    if config.sft.other_prompts:
        return
    own = checksum(prompt_path(config.debate.prompts))
    other = next((one for one in examples if one.prompts and not own.startswith(one.prompts)), None)
    if other is not None:
        raise DataError(
            f"{other.location}: the reply answers a prompt set other than debate.prompts = "
            f"{config.debate.prompts!r}; set debate.prompts, or set sft.other_prompts = true"
        )


def _without_held_out(
    examples: list[Example], config: Config, lost: Counter[str]
) -> tuple[list[Example], Problems]:
    """Return the examples whose problems are not held out, and the run's problems."""
    environment, held_out = load_held_out(config)
    unique = tuple({example.problem: None for example in examples})
    files = file_checksums(config)
    parts = Problems(environment, unique, held_out, files, environment)
    loaded = without_held_out(config, replace(parts, more=further_held_out(config, environment)))
    kept = set(loaded.train)
    left = [example for example in examples if example.problem in kept]
    lost["to held-out problems"] += len(examples) - len(left)
    return left, loaded


def _encoded(
    examples: Sequence[Example], config: Config, lost: Counter[str]
) -> list[tuple[Example, Encoded]]:
    """Return the examples of at most ``sft.max_tokens`` with their tokens. Warn of longer examples."""
    encoder, most = ReplyEncoder.of(config), config.sft.max_tokens
    pairs = [(example, encoder.encode(example)) for example in examples]
    short = [(example, encoded) for example, encoded in pairs if len(encoded.ids) <= most]
    count = len(pairs) - len(short)
    if not short:
        shortest = min(len(encoded.ids) for _, encoded in pairs)
        raise DataError(
            f"sft.max_tokens = {most}: leaves no reply: the shortest example has {shortest} tokens with its "
            "prompt; raise sft.max_tokens"
        )
    if count:
        lost[f"longer than {most} tokens ({count / len(pairs):.1%})"] = count
        line = f"{count} of {len(pairs)} replies left out ({count / len(pairs):.1%}): too long"
        warnings.warn(f"sft.max_tokens={most}: {line}", DataWarning, stacklevel=4)
    return short


def held_apart(
    pairs: Sequence[tuple[Example, Encoded]], count: int, seed: int
) -> tuple[list[tuple[Example, Encoded]], list[tuple[Example, Encoded]]]:
    """Split pairs into (learnt, held back): draw whole problems until ``count`` pairs are held back."""
    keys = [question_hash(example.problem.question) for example, _ in pairs]
    sizes, held, total = Counter(keys), set[str](), 0
    order = list(sizes)
    Random(derive_seed(seed, "held back")).shuffle(order)
    for key in order:
        if total >= count:
            break
        held.add(key)
        total += sizes[key]
    learnt = [pair for pair, key in zip(pairs, keys, strict=True) if key not in held]
    if not learnt:
        raise DataError(
            f"sft.held_back = {count}: leaves no reply to train on, of {len(pairs)} replies to "
            f"{len(sizes)} problems; lower sft.held_back"
        )
    return learnt, [pair for pair, key in zip(pairs, keys, strict=True) if key in held]


def _checksums(config: Config, loaded: Problems, pairs: Sequence[tuple[Example, Encoded]]) -> dict[str, str]:
    """Return the checksums of the files read, of the encoded replies, and of held-out problems."""
    files = {
        str(file): checksum(Path(file))
        for name in config.sft.data
        if is_file(name)
        for file in files_of(name)
    }
    digest = sha256()
    for _, encoded in pairs:
        digest.update(encoded.ids.tobytes())
        digest.update(encoded.learnt.tobytes())
    held = {"held out": problems_checksum(loaded.never_trained)} if loaded.never_trained else {}
    return {**loaded.checksums, **files, "replies": digest.hexdigest(), **held}


def steps_of(sft: SftConfig, replies: int) -> int:
    """Return the number of whole steps in ``sft.epochs`` of this many replies, at most ``sft.steps``.

    >>> steps_of(SftConfig(epochs=2, batch_size=32), 3825), steps_of(SftConfig(steps=100), 3825)
    (239, 100)
    """
    steps = floor(sft.epochs * replies / sft.batch_size)
    if not steps:
        raise ValueError(
            f"sft.epochs = {sft.epochs:g}: for {replies} replies this is less than one step of "
            f"sft.batch_size = {sft.batch_size}; raise the epochs, or lower the batch size"
        )
    return steps if sft.steps is None else min(steps, sft.steps)
