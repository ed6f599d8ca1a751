"""Load and check prompt sets. One TOML file contains all texts of a set."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from string import Template
from typing import TypeAlias, cast

from debate.files import read_toml
from debate.settings import did_you_mean

SHIPPED = Path(__file__).parent.parent / "prompts"

_TASK = ({"handle"}, {"instructions", "answer", "own", "compared"})
_PLACEHOLDERS: Mapping[str, tuple[set[str], set[str]]] = {
    "problem": ({"question", "choices"}, set()),
    "choices": ({"options"}, set()),
    "option": ({"label", "text"}, set()),
    "entry": ({"handle", "solution"}, {"round"}),
    "entry_evaluated": ({"handle", "solution"}, {"round", "evaluation"}),
    "entry_criticism": ({"handle", "evaluation"}, {"round"}),
    "answer_alone": ({"answer"}, set()),
    "summary": ({"summary"}, set()),
    "compress": ({"solution"}, set()),
    "select": (set(), {"compared"}),
    "shot_reply": (set(), {"solution", "answer", "box"}),
    "opening": _TASK,
    "opening_alone": (set(), _TASK[0] | _TASK[1]),
    "review": _TASK,
    "debate": _TASK,
    "ballot": _TASK,
    "critique": _TASK,
    "critique_unranked": _TASK,
    "revision": _TASK,
    "rival": _TASK,
    "tools": (set(), {"calls"}),
    "raw_system": ({"content"}, set()),
    "raw_user": ({"content"}, set()),
    "raw_reply": ({"content"}, set()),
}
"""The placeholders that a piece must have, and those that it may have. Other pieces have none."""

Fill = Callable[..., str]
"""A piece with placeholders, as a function of their values by keyword."""


class PromptFileError(ValueError):
    """A prompt file cannot be used. The message names the file, the key and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTexts:
    """All texts of a prompt set, explained in default.toml. ``templates`` has them as written.

    ``alone``: the set is a prompt family, for one agent in one round.
    """

    name: str
    system: str
    system_alone: str
    system_critique: str
    problem: Fill
    choices: Fill
    option: Fill
    history_before: str
    left_out: str
    entry: Fill
    entry_evaluated: Fill
    entry_criticism: Fill
    no_criticism: str
    history_after: str
    summary: Fill
    summarize: str
    compress: Fill
    select: Fill
    unreadable: str
    cut: str
    opening: Fill
    opening_alone: Fill
    review: Fill
    debate: Fill
    ballot: Fill
    critique: Fill
    critique_unranked: Fill
    revision: Fill
    rival: Fill
    answer_alone: Fill
    answer_checked: str
    answer_choice: str
    answer_open: str
    answer_whole: str
    own_excluded: str
    own_included: str
    shot_reply: Fill
    tools: Fill
    sections: bool
    stop: tuple[str, ...]
    strip: bool
    line_break: str
    raw_system: Fill
    raw_user: Fill
    raw_reply: Fill
    raw_start: str
    templates: Mapping[str, str] = field(repr=False, compare=False)
    alone: bool = False


Values: TypeAlias = dict[str, str | bool | list[str]]
"""The content of a prompt file."""
_CRITIQUE = (
    *("system_critique", "critique", "critique_unranked", "revision", "entry_criticism", "no_criticism"),
)
_LATER = (
    *(
        "summary",
        "summarize",
        "compress",
        "select",
        "answer_whole",
        "shot_reply",
        "tools",
        "sections",
        "stop",
        "rival",
        "answer_alone",
    ),
    *_CRITIQUE,
)
"""Keys that a prompt file may omit; the texts of the default set are used."""
_KEYS = tuple(f.name for f in fields(PromptTexts) if f.name not in {"name", "templates", "alone"})
_DEBATE = ("system", "entry", "opening", "review", "debate", "ballot")
"""The pieces of a debate. A file without any of them is a prompt family, for one agent in one round."""
_FAMILY_NEEDS = ("problem", "opening_alone")
_FAMILY: Values = {
    "system_alone": "",
    "sections": False,
    "shot_reply": "$solution",
    "raw_system": "$content\n\n",
    "raw_user": "$content",
    "raw_reply": "$content\n\n",
    "raw_start": "",
}
"""Default values of a prompt family. All other defaults are those of the default set."""
_KINDS = {"strip": bool, "sections": bool, "stop": list}


@lru_cache(maxsize=32)
def load_prompts(name: str) -> PromptTexts:
    """Return the shipped prompt set of that name, or the one in the TOML file at that path.

    PromptFileError if the file does not exist, is not TOML, or has unknown or missing keys or placeholders.

    >>> load_prompts("tiny").opening(instructions="careful", handle="K7", answer="", own="", compared="")
    'K7 careful solve'
    """
    texts = _read(prompt_path(name))
    alone = not any(key in texts for key in _DEBATE)
    if alone:
        _check_family(name, texts)
    defaults = _read(prompt_path("default")) | (_FAMILY if alone else {})
    texts = {key: defaults[key] for key in (_KEYS if alone else _LATER)} | texts
    _check_keys(name, texts)
    if not alone:
        _check_forging(name, texts)
    templates = {key: text for key, text in texts.items() if isinstance(text, str)}
    pieces = {key: _piece(name, key, text) for key, text in templates.items()}
    plain = {key: value for key, value in texts.items() if isinstance(value, bool)}
    stop = _stop_strings(name, texts["stop"])
    return PromptTexts(name=name, templates=templates, alone=alone, stop=stop, **plain, **pieces)  # type: ignore[arg-type]


def _check_family(name: str, texts: Values) -> None:
    """Raise PromptFileError if a file has neither the pieces of a debate nor those of a prompt family."""
    missing = [key for key in _FAMILY_NEEDS if key not in texts]
    if missing:
        raise PromptFileError(
            f"{name}: missing {', '.join(missing)}; a prompt family needs {' and '.join(_FAMILY_NEEDS)}, "
            f"and a set for debates needs all keys of {SHIPPED / 'default.toml'}"
        )


def _stop_strings(name: str, value: object) -> tuple[str, ...]:
    """Return the stop strings of a file. PromptFileError if one is invalid."""
    strings = cast("list[object]", value)
    if not all(isinstance(string, str) and string for string in strings):
        raise PromptFileError(f"{name}: stop must be a list of texts, none of them empty, got {value!r}")
    return tuple(map(str, strings))


def prompt_path(name: str) -> Path:
    """Return the path of a prompt set. PromptFileError if no shipped set has this name."""
    if "/" in name or "\\" in name or name.endswith(".toml"):
        return Path(name)
    path = SHIPPED / f"{name}.toml"
    if not path.exists():
        shipped = ", ".join(sorted(p.stem for p in SHIPPED.glob("*.toml")))
        raise PromptFileError(
            f"debate.prompts: no prompt set {name!r}; shipped: {shipped}; or give a .toml file"
        )
    return path


def _read(path: Path) -> Values:
    try:
        return read_toml(path)
    except OSError as error:
        raise PromptFileError(
            f"{path}: cannot be read ({error.strerror}); give the path of a TOML file"
        ) from error
    except ValueError as error:  # not UTF-8, or not TOML
        raise PromptFileError(f"{path}: not a UTF-8 TOML file: {error}") from error


def _check_keys(name: str, texts: Mapping[str, object]) -> None:
    for key, value in texts.items():
        if key not in _KEYS:
            hint = did_you_mean(key, _KEYS, f"valid keys: {', '.join(_KEYS)}")
            raise PromptFileError(f"{name}: unknown key {key!r}; {hint}")
        kind = _KINDS.get(key, str)
        if not isinstance(value, kind):
            raise PromptFileError(f"{name}: {key} must be a {kind.__name__}, got {value!r}")
    missing = [key for key in _KEYS if key not in texts]
    if missing:
        raise PromptFileError(
            f"{name}: missing {', '.join(missing)}; copy them from {SHIPPED / 'default.toml'}"
        )


def _check_forging(name: str, texts: Values) -> None:
    """Refuse a set in which a shown text could forge a line that looks like an entry or a role."""
    line_break = str(texts["line_break"])
    if "\n" not in line_break or line_break.rpartition("\n")[2]:
        return  # no shown text ever starts a line
    for key in (
        "entry",
        "entry_evaluated",
        "entry_criticism",
        "summary",
        "raw_user",
        "raw_reply",
        "raw_start",
    ):
        head = str(texts[key]).partition("$content")[0].strip()
        if head and not re.match(r"<[A-Za-z]", head):
            raise PromptFileError(
                f"{name}: {key} must open with a tag such as <work ...>, or line_break must not end a line "
                f'(for instance " " or "\\n  "): otherwise a shown text could look like another agent\'s'
            )


def _piece(name: str, key: str, text: str) -> str | Fill:
    """Return the text as a string, or as a function of its placeholders if it may have any."""
    required, optional = _PLACEHOLDERS.get(key, (set[str](), set[str]()))
    used = _placeholders(name, key, text)
    allowed = ", ".join(f"${p}" for p in sorted(required | optional)) or "none"
    for placeholder in sorted(used - required - optional):
        raise PromptFileError(
            f"{name}: {key} has an unknown placeholder ${placeholder}; it may have: {allowed}"
        )
    if lacking := ", ".join(f"${p}" for p in sorted(required - used)):
        raise PromptFileError(f"{name}: {key} lacks {lacking}; it may have: {allowed}")
    compiled = _format_string(text)
    return compiled.format if required or optional else compiled.format()


def _placeholders(name: str, key: str, text: str) -> set[str]:
    template = Template(text)
    if not template.is_valid():
        raise PromptFileError(f"{name}: {key} has a $ that is not a placeholder; write $$ for a dollar sign")
    return set(template.get_identifiers())


def _format_string(text: str) -> str:
    """Turn ``$x`` into ``{x}``, because str.format is several times faster than Template.substitute."""
    parts: list[str] = []
    end = 0
    for match in Template.pattern.finditer(text):
        parts.append(text[end : match.start()].replace("{", "{{").replace("}", "}}"))
        name = match["named"] or match["braced"]
        parts.append("{" + name + "}" if name else "$")
        end = match.end()
    return "".join(parts) + text[end:].replace("{", "{{").replace("}", "}}")
