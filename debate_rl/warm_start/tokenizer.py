"""The tokenizer of a tiny model: one token per piece of its vocabulary, and a plain chat template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from debate.prompting.rendering import SECTIONS
from debate_rl.config import Config
from debate_rl.config.models import Fallback
from envs.families import FAMILIES

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PAD, END, UNKNOWN = "<|pad|>", "<|end|>", "<|unknown|>"
ROLES = ("<|system|>", "<|user|>", "<|assistant|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] }}"
    "{% if message['role'] == 'assistant' %}{{ '<|end|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
_PRINTABLE = "\n" + "".join(map(chr, range(32, 127)))


def build_tokenizer(pieces: Sequence[str], *, fallback: Fallback = "bytes") -> PreTrainedTokenizerFast:
    """Return a tokenizer with one token per piece. If several pieces match, the tokenizer uses the longest.

    ``fallback`` sets the tokens of other text: UTF-8 bytes (256 tokens; every text round-trips), printable
    ASCII characters (96 tokens) or the unknown token. Chats become ``<|user|>content<|assistant|>``.

    >>> tokenizer = build_tokenizer(["11", " 1", " 11", "<solution>"], fallback="none")
    >>> tokenizer.tokenize("<solution> 11 1")
    ['<solution>', ' 11', ' 1']
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    alphabets = {
        "bytes": sorted(pre_tokenizers.ByteLevel.alphabet()),
        "ascii": [byte_level.pre_tokenize_str(c)[0][0] for c in _PRINTABLE],
        "none": [],
    }
    special = (END, PAD, UNKNOWN, *ROLES)
    vocabulary = {token: index for index, token in enumerate([*special, *alphabets[fallback]])}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token=UNKNOWN))
    backend.pre_tokenizer = byte_level
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in special])
    missing = [piece for piece in dict.fromkeys(pieces) if piece not in vocabulary]
    backend.add_tokens([AddedToken(piece, normalized=False, special=False) for piece in missing])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=PAD,
        eos_token=END,
        unk_token=UNKNOWN,
        additional_special_tokens=list(ROLES),
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    for piece in pieces:
        ids = tokenizer.encode(piece, add_special_tokens=False)
        if len(ids) != 1 or tokenizer.decode(ids) != piece or piece in special:
            raise ValueError(
                f"vocabulary: {piece!r} cannot be a piece; use plain text without control tokens"
            )
    return tokenizer


def tiny_vocabulary(config: Config) -> tuple[str, ...]:
    """Return the pieces of the vocabulary: section tags, handles, configured pieces and family words."""
    tiny = config.model.tiny
    if tiny is None:
        return ()
    names = dict.fromkeys(section for sections in SECTIONS.values() for section in sections)
    tags = [tag for name in names for tag in (f"<{name}>", f"</{name}>")]
    kind, levels = config.env.kind, config.env.levels
    own = FAMILIES[kind].of_levels(levels).vocabulary() if kind in FAMILIES else ()
    return tuple(dict.fromkeys((*tags, *(config.debate.handles or ()), *tiny.pieces, *own)))
