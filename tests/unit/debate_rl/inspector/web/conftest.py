from __future__ import annotations

import pytest

from debate_rl.inspector.web import site


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """No page says that it is busy, however slow the machine is."""
    monkeypatch.setattr(site, "PATIENCE_S", 60.0)
    monkeypatch.setattr(site, "LOOK_S", 60.0)
