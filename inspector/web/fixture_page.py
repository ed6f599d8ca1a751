"""A debate as a test fixture, to download: nothing is written beside the run."""

from __future__ import annotations

from starlette.responses import Response

from inspector.views.fixture import fixture_text
from inspector.views.reward import config_of
from inspector.web.debate_page import opened
from inspector.web.page import Asked


def download(asked: Asked) -> Response:
    """Answer with the fixture's JSON."""
    record = opened(asked)
    config, _ = config_of(asked.store.run)
    name = f"debate_{record.step}_{int(asked.id.partition('.')[2])}.json"
    content = fixture_text(record, config, source=f"{asked.name} {asked.id}")
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type="application/json", headers=headers)
