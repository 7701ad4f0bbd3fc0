"""Draws the chart of the README: the tokens of each call of the demo recording, with and without foveate.

    .venv/bin/python tools/picture_readme.py

Writes `docs/images/window-light.svg` and `window-dark.svg`. The same recording gives the same bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from foveate.replay import replay
from foveate.replay.recordings import read_recording

ROOT = Path(__file__).resolve().parent.parent
RECORDING = ROOT / "examples" / "data" / "demo.jsonl"
FOLDER = ROOT / "docs" / "images"
WINDOW = 64_000
WIDTH, HEIGHT = 860, 330
LEFT, RIGHT, TOP, BOTTOM = 64, 836, 30, 284
TOP_TOKENS = 130_000


class Theme(NamedTuple):
    """Colors of one scheme. Each text has a contrast of at least 4.5 to the background."""

    background: str
    text: str
    grid: str
    whole: str
    view: str
    wall: str


THEMES = {
    "light": Theme("#ffffff", "#3b4252", "#d8dee9", "#8a5a00", "#0b6e63", "#b3261e"),
    "dark": Theme("#0d1117", "#c9d1d9", "#30363d", "#e3b341", "#4ac7b6", "#ff7b72"),
}


def main() -> None:
    """Replay the recording twice, and draw both schemes."""
    recording = read_recording(RECORDING)
    whole = [call.tokens for call in replay(recording, policy="off", window=WINDOW).calls]
    view = [call.tokens for call in replay(recording, policy="balanced", window=WINDOW).calls]
    for scheme, theme in THEMES.items():
        path = FOLDER / f"window-{scheme}.svg"
        path.write_text(draw(theme, whole, view), encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes; peaks {max(whole):,} and {max(view):,}")


def draw(theme: Theme, whole: list[int], view: list[int]) -> str:
    """Return the chart as SVG."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        ' role="img" font-family="system-ui, sans-serif" font-size="14">',
        f"<title>Tokens of {len(view)} calls of a coding agent: the complete history outgrows a window of "
        f"{WINDOW:,} tokens, and the view stays below {_up(max(view)):,}.</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="{theme.background}"/>',
    ]
    for tokens in range(0, TOP_TOKENS, 32_000):
        parts.append(_line(LEFT, _y(tokens), RIGHT, _y(tokens), theme.grid))
        parts.append(_text(LEFT - 8, _y(tokens) + 5, f"{tokens // 1000}k", theme.text, "end"))
    parts.append(_line(LEFT, _y(WINDOW), RIGHT, _y(WINDOW), theme.wall, 'stroke-width="2" stroke-dasharray="7 5"'))
    parts.append(_text(LEFT + 8, _y(WINDOW) - 8, "the model's window, 64,000 tokens", theme.wall))
    parts.append(_curve(whole, len(view), theme.whole))
    parts.append(_curve(view, len(view), theme.view))
    hit = next(place for place, tokens in enumerate(whole) if tokens > WINDOW)
    parts.append(f'<circle cx="{_x(hit, len(whole)):.1f}" cy="{_y(WINDOW):.1f}" r="5" fill="{theme.wall}"/>')
    parts.append(_text(_x(hit, len(whole)) + 10, _y(WINDOW) + 20, f"call {hit + 1} is refused", theme.wall))
    parts.append(_text(RIGHT - 6, TOP + 2, "everything sent", theme.whole, "end"))
    parts.append(_text(RIGHT - 6, _y(max(view)) - 10, "the view of foveate", theme.view, "end"))
    parts.append(_text(RIGHT, BOTTOM + 28, f"{len(view)} model calls of a coding agent", theme.text, "end"))
    parts.append(_text(LEFT, BOTTOM + 28, "tokens in each request", theme.text))
    return "\n".join([*parts, "</svg>", ""])


def _x(place: int, count: int) -> float:
    return LEFT + (RIGHT - LEFT) * place / (count - 1)


def _y(tokens: int) -> float:
    return BOTTOM - (BOTTOM - TOP) * tokens / TOP_TOKENS


def _up(tokens: int) -> int:
    return -(-tokens // 1000) * 1000


def _curve(tokens: list[int], count: int, color: str) -> str:
    points = " ".join(f"{_x(place, count):.1f},{_y(value):.1f}" for place, value in enumerate(tokens))
    return f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2.5" stroke-linejoin="round"/>'


def _line(x1: float, y1: float, x2: float, y2: float, color: str, style: str = "") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" {style}/>'


def _text(x: float, y: float, text: str, color: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{color}" text-anchor="{anchor}">{text}</text>'


if __name__ == "__main__":
    main()
