"""Colours as people see them: CIELAB, CIEDE2000, and the colour-blindnesses as simulated by Machado et al. (2009)."""

from __future__ import annotations

from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt

Vector = tuple[float, ...]

# For linear RGB, at the full severity of each.
VISIONS: dict[str, tuple[Vector, ...]] = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deutan": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritan": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
_XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))


def lab(colour: str, vision: str = "normal") -> Vector:
    """A colour such as #d20a05 in CIELAB, for somebody with this vision."""
    seen = _times(VISIONS[vision], tuple(map(_linear, bytes.fromhex(colour[1:]))))
    xyz = _times(_XYZ, tuple(min(1.0, max(0.0, part)) for part in seen))
    fx, fy, fz = (_root(part / white) for part, white in zip(xyz, _times(_XYZ, (1, 1, 1)), strict=True))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def _linear(byte: int) -> float:
    part = byte / 255
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def _times(matrix: tuple[Vector, ...], vector: Vector) -> Vector:
    return tuple(sum(m * v for m, v in zip(row, vector, strict=True)) for row in matrix)


def _root(t: float) -> float:
    return t ** (1 / 3) if t > (6 / 29) ** 3 else t / (3 * (6 / 29) ** 2) + 4 / 29


def ciede2000(first: Vector, second: Vector) -> float:
    """The difference of two colours: 1 can just be seen, from 10 on it is plain at a glance."""
    (l1, a1, b1), (l2, a2, b2) = first, second
    stretch = 1 + 0.5 * (1 - _chroma_weight((hypot(a1, b1) + hypot(a2, b2)) / 2))
    c1, c2 = hypot(stretch * a1, b1), hypot(stretch * a2, b2)
    h1, h2 = (degrees(atan2(b, stretch * a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0
    mean_l, mean_c = (l1 + l2) / 2, (c1 + c2) / 2
    mean_h = (h1 + turn / 2) % 360 if c1 * c2 else h1 + h2
    t = (
        1
        - 0.17 * cos(radians(mean_h - 30))
        + 0.24 * cos(radians(2 * mean_h))
        + 0.32 * cos(radians(3 * mean_h + 6))
        - 0.20 * cos(radians(4 * mean_h - 63))
    )
    lightness = (l2 - l1) / (1 + 0.015 * (mean_l - 50) ** 2 / sqrt(20 + (mean_l - 50) ** 2))
    chroma = (c2 - c1) / (1 + 0.045 * mean_c)
    hue = 2 * sqrt(c1 * c2) * sin(radians(turn / 2)) / (1 + 0.015 * mean_c * t)
    rotation = -sin(radians(60 * exp(-(((mean_h - 275) / 25) ** 2)))) * 2 * _chroma_weight(mean_c)
    return sqrt(lightness**2 + chroma**2 + hue**2 + rotation * chroma * hue)


def _chroma_weight(chroma: float) -> float:
    return sqrt(chroma**7 / (chroma**7 + 25.0**7))
