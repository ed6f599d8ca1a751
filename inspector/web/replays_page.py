"""The replays of a run: what another scheme would have paid."""

from __future__ import annotations

from starlette.responses import Response

from inspector.views.replays import read_replay, replays
from inspector.web.page import Asked, show
from inspector.web.site import Unknown

MOST_CELLS = 200


def listing(asked: Asked) -> Response:
    """Show the replays of a run."""
    return show(asked, "replays", found=replays(asked.site.run(asked.name or "").path))


def replay(asked: Asked) -> Response:
    """Show one replay, and one debate under both schemes where the address names it."""
    run, wanted = asked.site.run(asked.name or "").path, asked.request.path_params["replay"]
    if wanted not in {one.name for one in replays(run)}:
        raise Unknown(f"there is no replay {wanted!r}")
    found, id = read_replay(run, wanted), asked.query.get("debate", "")
    debate = found.debate(id) if id else None
    if id and debate is None:
        raise Unknown(f"the replay shows no debate {id!r}")
    return show(asked, "replay", found=found, debate=debate, most=MOST_CELLS)
