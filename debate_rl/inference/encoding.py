"""Encode messages as prompt token ids, so that no message can write a control token.

The chat template is rendered once for each sequence of roles, with unique placeholders. Its control tokens
are replaced by private stand-ins that only a copy of the tokenizer knows. Then the contents are filled in,
and the text is encoded in one call that treats real control tokens as plain text. So ordinary contents get
exactly the ids of ``tokenizer.apply_chat_template(..., tokenize=True)``, and ``<|im_end|>`` inside a peer's
text is just characters.

A template that inserts today's date gets a fixed one. Where a template has no place for a system message, its
text stands in front of the first user message.
"""

# pyright: standard, reportMissingTypeStubs=false
# torch, transformers and tokenizers are only partly typed: strict rules stop at their borders.

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from debate.prompting.rendering import raw_prompt as default_raw_prompt
from debate.types import Message
from debate_rl.inference.decoding import fast_backend

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_EDGE = "\u2003"  # a space no template writes: it shows whether the template trims contents
_SURROGATE = re.compile(r"[\ud800-\udfff]")  # half a character: no text that can be encoded holds one
_TAG = re.compile(r"<[^\s<>]+>|\[[^\s\[\]]+\]")
_MARK = re.compile(r"<[|｜][^\s<>]+[|｜]>")  # a tag that ordinary text does not contain
_TODAY = date(2024, 7, 26)  # the default of Llama's templates: the prompts of a run never change


class EncodingError(ValueError):
    """A tokenizer or chat template cannot encode these messages."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of the template: a text, or the place of message number ``message`` if ``message`` >= 0.

    The template trims the message's ``left`` or ``right`` end.
    """

    text: str = ""
    message: int = -1
    left: bool = False
    right: bool = False


class PromptEncoder:
    """Turns messages into prompt ids (P,), for a chat model or, with ``chat=False``, as one raw text.

    ``raw_prompt`` writes the raw text, by default as ``debate.prompting.rendering.raw_prompt``. ``thinking``
    goes to the template as ``enable_thinking``. Raises EncodingError for ``chat`` without a chat template.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        chat: bool,
        thinking: bool = False,
        raw_prompt: Callable[[tuple[Message, ...]], str] | None = None,
    ) -> None:
        if chat and not tokenizer.chat_template:
            raise EncodingError("chat = true, but the tokenizer has no chat template; set chat = false")
        self.chat, self.thinking = chat, thinking
        self._tokenizer = tokenizer
        self._raw_prompt = raw_prompt or default_raw_prompt
        self._text = PlainText(tokenizer)
        bos = tokenizer.bos_token_id
        begun = [] if chat else fast_backend(tokenizer).encode("x").ids[:1]
        self._bos = begun if begun == [bos] else []
        self._mark = secrets.token_hex(12)
        self._rendered: dict[tuple[str, ...], tuple[_Part, ...]] = {}

    def encode(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the ids of the prompt (P,), which ends where the reply begins."""
        if not self.chat:
            return (*self._bos, *self._text.encode([(self._raw_prompt(tuple(messages)), False)]))
        parts = self._parts(tuple(message.role for message in messages))
        return tuple(self._text.encode(_filled(parts, messages)))

    def continuation(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the ids (C,) from a reply's text to the next reply: the reply's end, and these messages."""
        said = (Message("user", ""), Message("assistant", self._mark), *messages)
        if not self.chat:
            text = self._raw_prompt(said).partition(self._mark)[2]
            return tuple(self._text.encode([(text, False)]))
        parts = self._parts(tuple(message.role for message in said))
        reply = next(index for index, part in enumerate(parts) if part.message == 1)
        return tuple(self._text.encode(_filled(parts[reply + 1 :], said)))

    def opens_thinking(self, messages: Sequence[Message]) -> bool:
        """Return whether the prompt itself ends with ``<think>``."""
        if not self.chat:
            return self._raw_prompt((Message("user", "x"),)).rstrip().endswith("<think>")
        last = self._parts(tuple(message.role for message in messages))[-1]
        return last.message < 0 and last.text.rstrip().endswith("<think>")

    def reply_ids(self, text: str, tags: Sequence[str]) -> tuple[int, ...]:
        """Return the ids of a reply (T,). Only these tags may be control tokens."""
        pieces = re.split(f"({'|'.join(map(re.escape, tags))})", text)
        return tuple(self._text.encode((piece, at % 2 == 1) for at, piece in enumerate(pieces)))

    def template_ids(self, text: str) -> tuple[int, ...]:
        """Return the ids of a trusted text, which may contain control tokens."""
        return tuple(self._text.encode([(text, True)]))

    def _parts(self, roles: tuple[str, ...]) -> tuple[_Part, ...]:
        if roles not in self._rendered:
            self._rendered[roles] = _render(self._tokenizer, roles, thinking=self.thinking)
        return self._rendered[roles]


class PlainText:
    """A copy of a fast tokenizer that encodes control tokens only in the template's own text."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        from tokenizers import AddedToken, Tokenizer

        controls = control_tokens(tokenizer)
        data = json.loads(fast_backend(tokenizer).to_str())
        for token in data["added_tokens"]:
            token["special"] = token["content"] in controls
        self._backend = Tokenizer.from_str(json.dumps(data))
        self._backend.no_padding()
        self._backend.no_truncation()
        self._backend.encode_special_tokens = True
        key = f"\ue000{secrets.token_hex(12)}"
        self._stand_ins = {text: f"{key}.{index}\ue001" for index, text in enumerate(controls)}
        self._break = f"{key}.\ue001"
        flags, plain = tokenizer.added_tokens_decoder, {"normalized": False, "special": False}
        added = [AddedToken(self._break, **plain)]
        for text, name in self._stand_ins.items():
            own = flags[controls[text]]
            added.append(AddedToken(name, lstrip=own.lstrip, rstrip=own.rstrip, **plain))
        self._backend.add_tokens(added)
        self._real = {self._id(name): controls[text] for text, name in self._stand_ins.items()}
        self._break_id = self._id(self._break)
        unknown = tokenizer.unk_token_id  # text that no token covers is encoded as this one, which is right
        self._forbidden = {index: text for text, index in controls.items() if index != unknown}
        longest_first = sorted(controls, key=len, reverse=True)
        self._find = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def encode(self, parts: Iterable[tuple[str, bool]]) -> list[int]:
        """Return the ids (P,) of the joined parts. Only parts marked True may contain control tokens."""
        parts = list(parts)
        ids = self._encoded(parts, broken=())
        bad = {self._forbidden[i] for i in ids if i in self._forbidden}
        if bad:  # a model whose own pieces spell a control token: keep the pieces apart
            ids = self._encoded(parts, broken=tuple(bad))
        real = self._real
        return [real.get(i, i) for i in ids if i not in self._forbidden and i != self._break_id]

    def _encoded(self, parts: list[tuple[str, bool]], *, broken: tuple[str, ...]) -> list[int]:
        text = "".join(
            self._find.sub(lambda m: self._stand_ins[m[0]], part) if template else self._broken(part, broken)
            for part, template in parts
        )
        return self._backend.encode(_SURROGATE.sub("\ufffd", text), add_special_tokens=False).ids

    def _broken(self, text: str, controls: tuple[str, ...]) -> str:
        for control in controls:
            text = text.replace(control, control[0] + self._break + control[1:])
        return text

    def _id(self, token: str) -> int:
        index = self._backend.token_to_id(token)
        assert index is not None, "the backend lost a token that was just added"
        return index


def control_tokens(tokenizer: PreTrainedTokenizerBase) -> dict[str, int]:
    """Return the tokens that only the template may write, as text -> id.

    These are all special tokens, tags in the template (Qwen3 does not mark ``<think>`` as special) and tags
    that ordinary text does not contain (nor Qwen2.5 ``<|fim_prefix|>``).
    """
    template = str(tokenizer.chat_template or "")
    return {
        token.content: index
        for index, token in tokenizer.added_tokens_decoder.items()
        if token.special
        or _MARK.fullmatch(token.content)
        or (_TAG.fullmatch(token.content) and token.content in template)
    }


def end_of_turn(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """Return the control token that the chat template writes behind a reply, or None if there is none."""
    try:
        parts = _render(tokenizer, ("user", "assistant", "user"), thinking=False)
    except (ValueError, TypeError):
        return None
    reply = next(index for index, part in enumerate(parts) if part.message == 1)
    behind, controls = parts[reply + 1].text.lstrip(), control_tokens(tokenizer)
    found = [text for text in controls if behind.startswith(text)]
    return controls[max(found, key=len)] if found else None


def _render(
    tokenizer: PreTrainedTokenizerBase, roles: tuple[str, ...], *, thinking: bool
) -> tuple[_Part, ...]:
    """Return the parts of the template for these roles. EncodingError if it rejects or loses a message.

    A template without a place for the system message gets it as the beginning of the first user message.
    """
    key = secrets.token_hex(12)
    chat = [{"role": role, "content": f"{_EDGE}{key}x{i}x{_EDGE}"} for i, role in enumerate(roles)]
    try:
        return _rendered(tokenizer, chat, key, roles, thinking=thinking)
    except EncodingError:
        if roles[:2] != ("system", "user"):
            raise
    first = {"role": "user", "content": f"{chat[0]['content']}\n\n{chat[1]['content']}"}
    return _rendered(tokenizer, [first, *chat[2:]], key, roles, thinking=thinking)


def _rendered(
    tokenizer: PreTrainedTokenizerBase,
    chat: list[dict[str, str]],
    key: str,
    roles: tuple[str, ...],
    *,
    thinking: bool,
) -> tuple[_Part, ...]:
    from jinja2 import TemplateError

    try:
        text = tokenizer.apply_chat_template(
            chat,
            tokenize=False,
            add_generation_prompt=True,
            enable_thinking=thinking,
            strftime_now=_TODAY.strftime,
        )
    except TemplateError as error:
        raise EncodingError(f"the chat template refuses the roles {', '.join(roles)}: {error}") from error
    parts = tuple(
        _Part("", int(piece.strip(_EDGE).split("x")[1]), piece[0] != _EDGE, piece[-1] != _EDGE)
        if key in piece
        else _Part(piece)
        for piece in re.split(f"({_EDGE}?{key}x\\d+x{_EDGE}?)", str(text))
        if piece
    )
    if sorted(part.message for part in parts if part.message >= 0) != list(range(len(roles))):
        raise EncodingError(f"the chat template drops or repeats a message of the roles {', '.join(roles)}")
    return parts


def _filled(parts: tuple[_Part, ...], messages: Sequence[Message]) -> list[tuple[str, bool]]:
    """Return the pieces in order, each as (text, whether the text belongs to the template)."""
    filled: list[tuple[str, bool]] = []
    for part in parts:
        text = messages[part.message].content if part.message >= 0 else part.text
        text = text.lstrip() if part.left else text
        filled.append((text.rstrip() if part.right else text, part.message < 0))
    return filled
