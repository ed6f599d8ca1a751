"""A sandbox: programs of replies run in it, and reach nothing outside.

``box.py`` builds the outer box, ``sandbox.py`` is spoken to by asyncio, ``inside/`` is what runs in the box.
"""

from envs.sandbox.box import Limits, SandboxRefused
from envs.sandbox.sandbox import Sandbox

__all__ = ["Limits", "Sandbox", "SandboxRefused"]
