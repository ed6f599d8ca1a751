r"""Escape the text of other agents before it enters a prompt.

A shown text cannot open or close a tag, carry a chat control token, or hide characters:

- line breaks of every kind become ``\n``; control, zero-width, bidi and other invisible characters are
  removed,
- ``<`` (also ``＜`` and ``﹤``) becomes ``&lt;`` where a tag could begin: before a letter, ``/``, ``|``,
  ``!``, ``?`` or ``_``, before spaces or ``\`` and a section's name, and at the end of the text,
- an escaped tag, as in ``&lt;solution&gt;``, becomes ``&lt;solution>``, which is not a tag: an agent that
  quotes a shown text cannot close a section with it, or cast a vote,
- ``[`` becomes ``&#91;`` before the bracketed control words of chat templates, as in ``[INST]``.

Mathematics is unchanged: ``x < 5``, ``x < y``, ``0<x<1``, ``a & b`` and ``[ABC]``. The exception is a letter
right after ``<`` that is followed by a space or more letters, as in ``n<m holds``: this could be a tag, and
becomes ``n&lt;m``. Escaped text cannot look like a new entry of the history either. The prompt files ensure
this: an entry opens with a tag, or a shown text never starts a line (``line_break``).
"""

from __future__ import annotations

import re

from debate.parsing.tags import ESCAPED

_LINE_BREAK = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_TAG = re.compile(
    r"[<\uff1c\ufe64](?=\s*(?:/|\Z)"
    r"|[|\uff5c!?_]"
    r"|[^\W\d_](?![^\w\s/>\uff1e|:=.\-])"
    r"|(?:\s+|\s*\\\s*)(?:solution|evaluation|comparison|target|think|work))",
    re.IGNORECASE,
)
_CONTROL_WORD = re.compile(
    r"\[(?=\s{0,8}/?\s{0,8}(?:INST|SYS|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_\w{1,20}|IMG(?:_\w{1,20})?|THINK|ARGS|CALL_ID"
    r"|PREFIX|MIDDLE|SUFFIX|CLS|SEP|MASK|gMASK|sMASK|sop|eop|PAD|UNK|BOS|EOS)\s{0,8}\])"
)


def clean(text: str) -> str:
    r"""Return ``text`` with plain line breaks and without invisible characters.

    >>> clean("a\u200bb\u202e\r\nc\x00")
    'ab\nc'
    """
    return _UNSEEN.sub("", _LINE_BREAK.sub("\n", text))


def escape(text: str) -> str:
    """Return ``text`` cleaned and escaped for a prompt, so that it cannot form a tag or a control token.

    >>> escape("x < 5 and 0<x<1, but </solution> <|im_end|> [INST]")
    'x < 5 and 0<x<1, but &lt;/solution> &lt;|im_end|> &#91;INST]'
    """
    escaped = _CONTROL_WORD.sub("&#91;", _TAG.sub("&lt;", clean(text)))
    return ESCAPED.sub(lambda tag: tag[0][: -len("&gt;")] + ">", escaped)
