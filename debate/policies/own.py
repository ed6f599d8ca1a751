"""A policy of your own, named in a configuration as "package.module:factory"."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import cast

from debate.settings import load_dotted, require_call
from debate.types import Policy

KEY = "model.policy"


def own_policy(path: str) -> Callable[..., Policy]:
    """Return the factory of that path; what it makes is checked against ``Policy``.

    ValueError where there is no such factory, where it does not take what it is called with, and where what
    it makes is no policy.
    """
    factory = load_dotted(path, key=KEY)
    if not callable(factory):
        raise ValueError(f"{KEY}: {path!r} names a {type(factory).__name__}, which is no class or function")

    def make(*args: object, **settings: object) -> Policy:
        require_call(factory, f"{KEY}: {path!r}", *args, **settings)
        return _checked(path, factory(*args, **settings))

    return make


def _checked(path: str, policy: object) -> Policy:
    """Return the object as a policy, or say which part of the protocol it lacks."""
    if type(getattr(policy, "version", None)) is not int:
        raise ValueError(f"{KEY}: what {path!r} makes has no number 'version'; see debate.Policy")
    for name, arguments in (("sample", (None,)), ("update", (None, 0))):
        method: object = getattr(policy, name, None)
        if not inspect.iscoroutinefunction(method):
            raise ValueError(f"{KEY}: what {path!r} makes has no async method {name!r}; see debate.Policy")
        require_call(method, f"{KEY}: {f'{path}, {name}'!r}", *arguments)
    return cast(Policy, policy)
