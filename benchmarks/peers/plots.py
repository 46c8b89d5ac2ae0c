"""Plots as SVG text: sorted curves and horizontal bars, with nothing but the standard library."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

COLOURS = ("#0b6e99", "#d9730d", "#0f7b6c", "#ad1a72", "#6940a5", "#9b9a97", "#dfab01", "#64473a")
WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 60, 170, 36, 40
TICKS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0)
ROW = 26


def curves(title: str, series: Mapping[str, Sequence[float]]) -> str:
    """Each series in ascending order, on a logarithmic scale; 1 is as fast as the given model."""
    known = {name: sorted(each) for name, each in series.items() if each}
    values = [value for each in known.values() for value in each] or [1.0]
    low, high = min(0.9, *values), max(1.1, *values)
    return _page(title, HEIGHT, [*_grid(low, high), *_lines(known, low, high)])


def bars(title: str, values: Mapping[str, float]) -> str:
    """One bar a name, each with its value."""
    largest = max(values.values(), default=0.0) or 1.0
    parts = [
        part
        for row, (name, value) in enumerate(values.items())
        for part in _bar(row, name, value, largest)
    ]
    return _page(title, TOP + ROW * len(values) + 12, parts)


def _page(title: str, height: int, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
    font = 'font-family="sans-serif" font-size="12">'
    background = f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
    heading = _text(LEFT, 20, title, weight="bold")
    return "\n".join([head + font, background, heading, *parts, "</svg>", ""])


def _grid(low: float, high: float) -> Iterator[str]:
    right = WIDTH - RIGHT
    for tick in (tick for tick in TICKS if low <= tick <= high):
        y = _height(tick, low, high)
        colour = "#444444" if tick == 1 else "#dddddd"
        yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="{colour}"/>'
        yield _text(LEFT - 8, y + 4, f"{tick:g}", anchor="end")
    yield _text((LEFT + right) / 2, HEIGHT - 12, "models, slowest first", anchor="middle")


def _lines(series: Mapping[str, Sequence[float]], low: float, high: float) -> Iterator[str]:
    for number, (name, values) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        steps = max(1, len(values) - 1)
        points = " ".join(
            f"{LEFT + (WIDTH - LEFT - RIGHT) * place / steps:.1f},{_height(value, low, high):.1f}"
            for place, value in enumerate(values)
        )
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        y = TOP + 18 * number
        x = WIDTH - RIGHT + 14
        yield f'<rect x="{x}" y="{y}" width="12" height="12" fill="{colour}"/>'
        yield _text(x + 18, y + 10, name)


def _bar(row: int, name: str, value: float, largest: float) -> Iterator[str]:
    y = TOP + ROW * row
    width = (WIDTH - 160 - 90) * value / largest
    colour = COLOURS[0] if name.startswith("relayout") else COLOURS[5]
    yield _text(150, y + 14, name, anchor="end")
    yield f'<rect x="160" y="{y}" width="{width:.1f}" height="{ROW - 8}" fill="{colour}"/>'
    yield _text(166 + width, y + 14, f"{value:,.4g}")


def _height(value: float, low: float, high: float) -> float:
    """Where a value is, from the top."""
    span = math.log(high) - math.log(low)
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (math.log(value) - math.log(low)) / span


def _text(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}"'
    return f'<text {place} fill="#222222">{escape(text)}</text>'
