"""The notebooks of docs/notebooks run from their first cell to their last."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2]
BOOKS = sorted((HOME / "docs/notebooks").glob("*.ipynb"))


def run_cells(book: Path, folder: Path) -> str:
    """Run the code cells of a notebook as one script, and return what they print."""
    cells = json.loads(book.read_text("utf-8"))["cells"]
    code = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    (folder / "cells.py").write_text(code)
    call = [sys.executable, "cells.py"]
    done = subprocess.run(
        call, cwd=folder, capture_output=True, text=True, env={"PYTHONPATH": str(HOME)}, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_there_are_five_notebooks():
    assert len(BOOKS) == 5


@pytest.mark.parametrize("book", BOOKS[:3], ids=lambda book: book.stem)
def test_a_notebook_runs(book, tmp_path):
    run_cells(book, tmp_path)


@pytest.mark.slow
def test_the_notebook_that_trains_and_the_one_that_reads_its_run(tmp_path):
    for book in BOOKS[3:]:
        run_cells(book, tmp_path)
    assert (tmp_path / "runs/brief/metrics.jsonl").is_file()
