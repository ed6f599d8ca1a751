"""The colours of personas: readable on every ground, and different for eyes that see fewer colours."""

import re
from itertools import combinations

import numpy as np
import pytest

from debate_rl.inspector.web.rendering import COLOURS, HERE

SHEET = (HERE / "static" / "style.css").read_text(encoding="utf-8")
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
EYES = {  # Machado, Oliveira and Fernandes 2009, severity 1
    "all colours": np.eye(3),
    "protan": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "deutan": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    "tritan": np.array([[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]]),
}


def scheme(number: int) -> dict[str, np.ndarray]:
    """The colours of the light (0) or dark (1) scheme in linear RGB."""
    start = [match.start() for match in re.finditer("--ground: #", SHEET)][number]
    found = re.findall(r"--(\w+): #(\w{6});", SHEET[start : SHEET.index("}", start)])
    part = {name: np.array([int(code[at : at + 2], 16) / 255 for at in (0, 2, 4)]) for name, code in found}
    return {name: np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) for name, c in part.items()}


def contrast(a: np.ndarray, b: np.ndarray) -> float:
    low, high = sorted((float(XYZ[1] @ a), float(XYZ[1] @ b)))
    return (high + 0.05) / (low + 0.05)


def lab(rgb: np.ndarray) -> np.ndarray:
    share = XYZ @ np.clip(rgb, 0, 1) / [0.9505, 1, 1.089]
    x, y, z = np.where(share > 0.008856, np.cbrt(share), 7.787 * share + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_contrast_is_that_of_wcag():
    assert contrast(np.ones(3), np.zeros(3)) == pytest.approx(21)


@pytest.mark.parametrize("number", [0, 1])
def test_personas_are_readable_and_can_be_told_apart(number):
    colours = scheme(number)
    personas = [colours[f"p{at}"] for at in range(COLOURS)]
    for ground in ("ground", "card", "soft"):
        assert min(contrast(one, colours[ground]) for one in personas) >= 4.5
    for seen in EYES.values():
        apart = (np.linalg.norm(lab(seen @ a) - lab(seen @ b)) for a, b in combinations(personas, 2))
        assert min(apart) > 25
