"""Which walls come: short sequences of rings, each with at least one open lane, drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from proctor.core.random import Stream

LANES = 6
ALL = (1 << LANES) - 1
THIN, THICK = 2_000, 6_000  # how deep a wall is, in the units of the field

Wall = tuple[int, int]  # the blocked lanes as bits, and the thickness
Pattern = Callable[[Stream], list[Wall]]


def all_but(*lanes: int) -> int:
    """Every lane blocked, except these."""
    blocked = ALL
    for lane in lanes:
        blocked &= ~(1 << lane % LANES)
    return blocked


def only(*lanes: int) -> int:
    return ALL & ~all_but(*lanes)


def turned(blocked: int, lanes: int) -> int:
    """The same walls, so many lanes further."""
    lanes %= LANES
    return (blocked << lanes | blocked >> (LANES - lanes)) & ALL


def mirrored(blocked: int) -> int:
    return sum(1 << (LANES - 1 - lane) for lane in range(LANES) if blocked >> lane & 1)


def gate(draws: Stream) -> list[Wall]:
    """One way through."""
    return [(all_but(0), THIN)]


def wide_gate(draws: Stream) -> list[Wall]:
    return [(all_but(0, 1), THIN)]


def posts(draws: Stream) -> list[Wall]:
    """Few walls: they only catch who stands before them."""
    return [(only(0, 1, 3), THIN), (only(2, 4, 5), THIN)]


def flips(draws: Stream) -> list[Wall]:
    """The way through changes sides."""
    return [(all_but(3 * (ring % 2)), THIN) for ring in range(2 + draws.below(3))]


def comb(draws: Stream) -> list[Wall]:
    """Every second lane, then the others."""
    return [(only(ring % 2, ring % 2 + 2, ring % 2 + 4), THIN) for ring in range(3 + draws.below(3))]


def spiral(draws: Stream) -> list[Wall]:
    """The way through goes round."""
    return [(all_but(ring, ring + 1), THIN) for ring in range(5 + draws.below(4))]


def double_spiral(draws: Stream) -> list[Wall]:
    return [(all_but(ring, ring + 3), THIN) for ring in range(4 + draws.below(4))]


def zigzag(draws: Stream) -> list[Wall]:
    return [(all_but(ring % 2), THIN) for ring in range(4 + draws.below(3))]


def tunnel(draws: Stream) -> list[Wall]:
    """Long walls: who has chosen a lane stays there."""
    return [(all_but(0), THICK), (all_but(2, 4), THICK)]


PATTERNS: tuple[Pattern, ...] = (gate, wide_gate, posts, flips, comb, spiral, double_spiral, zigzag, tunnel)


def walls(draws: Stream) -> Iterator[Wall]:
    """One pattern after the other, each turned and perhaps mirrored, without end."""
    while True:
        pattern = draws.choice(PATTERNS)(draws)
        turn, mirror = draws.below(LANES), draws.below(2)
        for blocked, thickness in pattern:
            yield turned(mirrored(blocked) if mirror else blocked, turn), thickness
