"""The protocol by which tests in one session call a program in another: calls and results are plain values.

The harness runs this file's text in both sessions. The program's session never holds the tests, and does not
decide whether they pass. So a program that lies about a return value has merely returned another value.
"""

from __future__ import annotations

import ast
import builtins
import json
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

PLAIN = (str, int, float, bool, type(None))
DEEPEST = 200


class Need(BaseException):
    """A test needs a reply that is not known yet."""


class Answering:
    """The program's side: perform requested operations, and keep values that are not plain."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._kept: list[Any] = []

    def answer(self, line: str) -> str:
        """Return the requested value, or the exception that was raised, as a line of JSON."""
        asked = json.loads(line)
        try:
            return json.dumps({"value": encode(self._do(asked), self._keep)})
        except Exception as error:
            return json.dumps({"raised": type(error).__name__, "text": str(error)[:500]})

    def _do(self, asked: dict[str, Any]) -> Any:
        target = decode(asked["target"], self._find)
        arguments = [decode(one, self._find) for one in asked["arguments"]]
        named = {name: decode(one, self._find) for name, one in asked["named"].items()}
        operations: dict[str, Callable[..., Any]] = {
            "call": lambda: target(*arguments, **named),
            "attribute": lambda: getattr(target, *arguments),
            "item": lambda: target[arguments[0]],
            "list": lambda: list(target),
            "length": lambda: len(target),
        }
        return operations[asked["operation"]]()

    def _keep(self, value: Any) -> dict[str, int]:
        self._kept.append(value)
        return {"kept": len(self._kept) - 1}

    def _find(self, where: dict[str, Any]) -> Any:
        return self._names[where["name"]] if "name" in where else self._kept[where["kept"]]


class Remote:
    """The tests' proxy of an object of the program: every use is a request to the program.

    A proxy is equal only to itself.
    """

    def __init__(self, ask: Callable[..., Any], where: dict[str, Any]) -> None:
        self.__dict__.update(_ask=ask, _where=where)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Request a call."""
        return self._ask("call", self._where, arguments, named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._ask("attribute", self._where, (name,), {})

    def __getitem__(self, key: Any) -> Any:
        return self._ask("item", self._where, (key,), {})

    def __iter__(self) -> Iterator[Any]:
        return iter(self._ask("list", self._where, (), {}))

    def __len__(self) -> int:
        return self._ask("length", self._where, (), {})


class Asking:
    """The tests' side: run a test repeatedly, with one more known reply each time, until it ends."""

    def __init__(self, setup: str, entry: str = "") -> None:
        self._setup, self._entry = setup, entry
        self._known: list[str] = []
        self._asked = 0

    def begin(self) -> None:
        """Forget all replies, because another test begins."""
        self._known.clear()

    def check(self, test: str, reply: str | None) -> str:
        """Return the test's next request as JSON, or whether the test passes.

        ``reply`` is the program's reply to the last request.
        """
        if reply is not None:
            self._known.append(reply)
        self._asked = 0
        random.seed(0)
        names: dict[str, Any] = {"__name__": "tests", "__builtins__": builtins}
        try:
            with warnings.catch_warnings(action="ignore"):
                exec(compile(self._setup, "<setup>", "exec"), names)
                names.pop(self._entry, None)
                for name in unknown_names(test, names):
                    names[name] = Remote(self._ask, {"name": name})
                exec(compile(test, "<test>", "exec"), names)
        except Need as need:
            return str(need)
        except BaseException:
            return json.dumps({"passed": False})
        return json.dumps({"passed": True})

    def _ask(self, operation: str, where: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        self._asked += 1
        if self._asked > len(self._known):
            asked = {
                "operation": operation,
                "target": {"at": where},
                "arguments": [encode(one, _at) for one in arguments],
                "named": {name: encode(one, _at) for name, one in named.items()},
            }
            raise Need(json.dumps(asked))
        reply = json.loads(self._known[self._asked - 1])
        if "raised" in reply:
            kind = getattr(builtins, str(reply["raised"]), Exception)
            raises = kind if isinstance(kind, type) and issubclass(kind, Exception) else Exception
            if issubclass(raises, StopIteration):  # it would end a loop in the test instead of failing
                raises = RuntimeError
            raise raises(str(reply["text"]))
        return decode(reply["value"], lambda kept: Remote(self._ask, kept))


def _at(value: Any) -> Any:
    if isinstance(value, Remote):
        return value.__dict__["_where"]
    raise TypeError(f"{type(value).__name__} cannot be passed to a program")


def unknown_names(test: str, names: dict[str, Any]) -> set[str]:
    r"""Return the names that a test uses but that neither the test, ``names`` nor Python's builtins define.

    >>> unknown_names("import math\nassert math.isclose(f(x := 1), len('a'))", {})
    {'f'}
    """
    nodes = list(ast.walk(ast.parse(test)))
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    bound |= {(one.asname or one.name).partition(".")[0] for one in nodes if isinstance(one, ast.alias)}
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    return {name for name in used - bound if name not in names and not hasattr(builtins, name)}


def encode(value: Any, keep: Callable[[Any], Any], depth: int = 0) -> Any:
    """Return a value as JSON data; a value that is not plain becomes ``{"at": keep(value)}``.

    >>> encode((1, [2.5, {"a"}]), str)
    {'tuple': [1, {'list': [2.5, {'set': ['a']}]}]}
    >>> decode(encode({(1, 2): None, 3: b"x"}, str), str)
    {(1, 2): None, 3: b'x'}
    """
    if depth > DEEPEST:
        raise ValueError("a value that is nested too deeply")
    if type(value) in PLAIN:
        return value
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, bytes | bytearray):
        return {"bytes": bytes(value).hex()}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, dict):
        pairs = [[encode(one, keep, depth + 1) for one in pair] for pair in value.items()]
        return {"dict": pairs}
    for kind in (list, tuple, set, frozenset):
        if isinstance(value, kind):
            return {kind.__name__: [encode(one, keep, depth + 1) for one in value]}
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        return encode(value.item(), keep, depth + 1)
    return {"at": keep(value)}


def decode(data: Any, find: Callable[[Any], Any]) -> Any:
    """Return the value of encoded data; ``find`` returns the values that were kept."""
    if not isinstance(data, dict):
        return data
    [(kind, inside)] = data.items()
    if kind == "at":
        return find(inside)
    if kind == "bytes":
        return bytes.fromhex(inside)
    if kind == "complex":
        return complex(*inside)
    if kind == "dict":
        return {decode(key, find): decode(value, find) for key, value in inside}
    kinds: dict[str, Callable[..., Any]] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
    return kinds[kind](decode(one, find) for one in inside)
