"""``python -m debate_rl``: the ``debate`` command, as torchrun starts it."""

from debate_rl.commands.main import run

run()
