"""The prompts that turns read, rebuilt from the record, or the reason why they are unknown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from debate.files import LARGEST, read_json, read_toml
from debate.policy import token_counts
from debate.prompting.rebuilding import HeldDebate, PromptUnknownError, held_debate
from debate.prompting.rendering import raw_prompt
from debate.prompting.texts import SHIPPED, prompt_path
from debate.types import SUMMARIZER, Completion, Debate, Message, TurnId
from debate_rl.evaluation.folder import IDENTITY
from debate_rl.inspector.blocks import Block, Line, Text
from debate_rl.inspector.runs import config_of
from debate_rl.inspector.views.debate import DebateView
from debate_rl.runs.provenance import prompts_checksum, prompts_key

TOKENIZER = "tokenizer.json"


@dataclass(frozen=True, slots=True)
class PromptView:
    """The prompt of a turn: its messages, or () and the reason ``why`` if they cannot be rebuilt.

    ``tokens``: the engine's token count, 0 if unknown. ``text``: the prompt exactly as sent, with its
    template, or "" if it cannot be decoded.
    """

    turn: TurnId
    messages: tuple[Message, ...]
    why: str = ""
    tokens: int = 0
    text: str = ""


class DebatePrompts:
    """The prompts of a debate. ``run``: the folder of its run, or None for a debate outside of runs.

    ``kept_before``: the turn from which a branch changed its agent's persona, or None.
    ``note``: the source of the prompts if the record does not name it, or why there are no prompts.
    """

    def __init__(self, debate: Debate, run: Path | None, kept_before: TurnId | None = None) -> None:
        self.note, self._kept_before = "", kept_before
        self._held: HeldDebate | None = None
        self._set, self._run = debate.protocol.prompts, run
        self._model = {} if run is None else _model_of(run)
        self._said: dict[TurnId, Completion] = {turn.id: turn.completion for turn in debate.turns}
        self._said |= {TurnId(SUMMARIZER, one.round): one.completion for one in debate.summaries}
        try:
            self.note = "" if run is None else _require_known(self._set, run)
            self._held = held_debate(debate)
        except ValueError as error:
            self.note = f"the prompts cannot be rebuilt exactly: {error}"

    def of(self, turn: TurnId) -> PromptView:
        """Return the prompt of a turn."""
        messages, why, changed = (), self.note, self._kept_before
        if changed is not None and turn.agent == changed.agent and turn.round < changed.round:
            why = "this turn was kept from the stored debate, which shows its prompt (with the old persona)"
        elif self._held is not None:
            try:
                messages, why = self._held.prompt(turn).messages, ""
            except PromptUnknownError as error:
                why = f"the prompt cannot be rebuilt exactly: {error}"
        return PromptView(turn, messages, why, *self._sent(turn, messages))

    def of_summary(self, round_: int) -> PromptView:
        """Return the prompt of the summarizer of a round."""
        return self.of(TurnId(SUMMARIZER, round_))

    def _sent(self, turn: TurnId, messages: tuple[Message, ...]) -> tuple[int, str]:
        """Return the token count of a prompt and its text as sent, or 0 and "" if unknown."""
        said = self._said.get(turn)
        count = token_counts(said)[0] if said else 0
        tokenizer = self._tokenizer if said and said.prompt_tokens else None
        if said and tokenizer is not None:
            return count, tokenizer.decode(list(said.prompt_tokens), skip_special_tokens=False)
        if messages and self._model.get("chat") is False:
            return count, raw_prompt(messages, self._set)
        return count, ""

    @cached_property
    def _tokenizer(self) -> Any:
        """The tokenizer of the run's model if it is tiny or its file is on this machine, else None."""
        if self._run is None:
            return None
        if self._model.get("tiny") is not None:
            return _tiny_tokenizer(self._run)
        path = _tokenizer_file(self._run, self._model)
        try:
            from tokenizers import Tokenizer

            return Tokenizer.from_file(str(path)) if path is not None else None
        except Exception:  # tokenizers raises no narrower class, and may not be installed
            return None


def _evaluation_of(folder: Path) -> Mapping[str, Any]:
    """Return the settings of the evaluation of this folder, or {}."""
    try:
        return _table(_table(read_json(folder.resolve().parent / IDENTITY)).get("of"))
    except (OSError, ValueError):
        return {}


def _model_of(run: Path) -> Mapping[str, Any]:
    if of := _evaluation_of(run):
        return _table(of.get("model"))
    try:
        return _table(read_toml(run / "config.toml").get("model"))
    except (OSError, ValueError):
        return {}


def _homes(run: Path) -> tuple[Path, ...]:
    """Return the folder, and those in which it lies if it is a part of a run's evaluation."""
    return run, *run.resolve().parents[:3]


def _tiny_tokenizer(run: Path) -> Any:
    """Return the tokenizer of a tiny model, which the configuration of the run decides, or None."""
    from debate_rl.inference.decoding import fast_backend
    from debate_rl.warm_start.tokenizer import build_tokenizer, tiny_vocabulary

    for home in _homes(run):
        config, _ = config_of(home)
        if config is not None and config.model.tiny is not None:
            return fast_backend(build_tokenizer(tiny_vocabulary(config), fallback=config.model.tiny.fallback))
    return None


def _tokenizer_file(run: Path, model: Mapping[str, Any]) -> Path | None:
    """Return the tokenizer.json of an export of the run, of the model's folder, or of the hub's cache."""
    name = model.get("name_or_path")
    folders = [home / "export" for home in _homes(run)]
    folders += [Path(name).expanduser()] if isinstance(name, str) and name else []
    for path in (folder / TOKENIZER for folder in folders):
        if path.is_file() and path.stat().st_size <= LARGEST:
            return path
    if not isinstance(name, str) or name.count("/") != 1:
        return None
    try:
        from huggingface_hub import try_to_load_from_cache  # does not download

        found = try_to_load_from_cache(name, TOKENIZER)
    except (ImportError, ValueError, OSError):
        return None
    return Path(found) if isinstance(found, str) else None


def _require_known(name: str, run: Path) -> str:
    """Return a note on a run's prompt set. PromptUnknownError if the set changed after the run.

    A custom file is read only if its checksum equals the checksum in the run.
    """
    facts: Mapping[str, Any] = {}
    with suppress(OSError, ValueError):
        facts = _table(read_json(run / "run.json"))
    starts = facts.get("starts")
    changed = [_table(_table(start).get("changed")) for start in (starts if isinstance(starts, list) else ())]
    try:
        key = prompts_key(name)
        known = _table(facts.get("data")).get(key) or _evaluation_of(run).get("prompts")
        readable = known is not None or prompt_path(name).parent == SHIPPED
        now = prompts_checksum(name) if readable else ""
    except (OSError, ValueError) as error:
        raise PromptUnknownError(f"its prompt set {name!r} cannot be read here ({error})") from error
    if not readable:
        raise PromptUnknownError(f"the run has no checksum of its prompt set {name!r}")
    if any(f"data: {key}" in keys for keys in changed):
        raise PromptUnknownError(f"its prompt set {name!r} was changed during the run")
    if known not in (None, now):
        raise PromptUnknownError(f"its prompt set {name!r} has changed since the run")
    note = f"prompts by the current prompt set {name!r}; the run does not record the version that it used"
    return "" if known else note


def _table(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def prompt_blocks(view: DebateView, prompts: DebatePrompts, turn: TurnId) -> list[Block]:
    """Return the prompts of a turn and of the summarizer of its round."""
    blocks: list[Block] = [Line(prompts.note, "notice", name="note")] if prompts.note else []
    blocks += prompt_texts(prompts.of(turn), prompts.note)
    if any(summary.round == turn.round for summary in view.summaries):
        blocks += prompt_texts(prompts.of_summary(turn.round), prompts.note, "summariser: ")
    return blocks


def prompt_texts(prompt: PromptView, note: str, reader: str = "") -> Iterator[Block]:
    """Yield the messages of a prompt, or why they are unknown unless the note says the same."""
    if prompt.why and prompt.why != note:
        yield Line(f"{reader}{prompt.why}", "notice", name="unknown")
    for message in prompt.messages:
        yield Text(message.content, f"{reader}prompt, {message.role}", "prompt", name="message")
    if prompt.text:
        count = f", {prompt.tokens:,} tokens" if prompt.tokens else ""
        yield Text(prompt.text, f"{reader}prompt, as sent{count}", "prompt", name="sent")
    elif prompt.tokens:
        unseen = f"The prompt had {prompt.tokens:,} tokens; the tokenizer to show them is not on this machine"
        yield Line(f"{reader}{unseen}.", "faint", name="unseen")
