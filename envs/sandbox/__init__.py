"""A sandbox that runs the programs in replies, without access to anything outside.

``box.py`` builds the outer box, ``sandbox.py`` is the asyncio interface, and ``inside/`` runs in the box.
"""

from envs.sandbox.box import Limits, SandboxRefused
from envs.sandbox.sandbox import Sandbox

__all__ = ["Limits", "Sandbox", "SandboxRefused"]
