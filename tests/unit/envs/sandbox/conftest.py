"""A sandbox for the tests; skipped, with the reason, where none can run."""

import asyncio

import pytest

from envs.sandbox import Limits, Sandbox, SandboxRefused


@pytest.fixture(scope="session")
def open_box():
    """Return open(**limits) -> Sandbox; each is closed at the end."""
    opened = []

    def open_one(*, warm=0, unsafe=False, **limits):
        sandbox = Sandbox(Limits(**limits), warm=warm, unsafe=unsafe)
        try:
            sandbox.start()
        except SandboxRefused as refused:
            sandbox.close()
            pytest.skip(str(refused))
        opened.append(sandbox)
        return sandbox

    yield open_one
    for sandbox in opened:
        sandbox.close()


@pytest.fixture(scope="session")
def box(open_box):
    return open_box(seconds=5.0, memory_mb=256, processes=16, file_mb=8, output_chars=1000)


@pytest.fixture(scope="session")
def run(box):
    """Return run(*programs, box=box) -> the result of each, one after another in one session."""

    def run_all(*programs, box=box):
        async def of_one_session():
            async with box.session() as session:
                return [await session.run(program) for program in programs]

        return asyncio.run(of_one_session())

    return run_all
