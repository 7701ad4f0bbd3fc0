"""Plots of measured values as SVG, one file for light and one for dark pages. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from peers.report import Values
from peers.runner import Found, Sizes

_THEMES = {
    "light": {"back": "#ffffff", "text": "#3b4252", "grid": "#d8dee9", "ours": "#0b6e63", "limit": "#8a93a3"},
    "dark": {"back": "#0d1117", "text": "#c9d1d9", "grid": "#30363d", "ours": "#4ac7b6", "limit": "#768390"},
}
_OTHERS = ("#c2571a", "#7a5cc9", "#b3261e", "#2f7dd1", "#9a7400", "#c2408f", "#5f8f1f", "#1f8fa3", "#a0622d", "#6c6f93")
"""Colors of the other libraries. Each can be read on both backgrounds."""
_BARS = {"append": "append, ms of CPU", "resume": "resume, ms of CPU", "disk": "bytes on disk a message"}


def draw(peers: Sequence[Found], values: Values, sizes: Sizes, folder: Path) -> list[Path]:
    """Write the plots, and return their paths. The same values give the same bytes."""
    import matplotlib

    matplotlib.use("svg")
    written = []
    folder.mkdir(parents=True, exist_ok=True)
    for scheme, theme in _THEMES.items():
        style = {
            **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), theme["back"]),
            **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), theme["text"]),
            **dict.fromkeys(("axes.edgecolor", "grid.color"), theme["grid"]),
            "svg.fonttype": "none",
            "svg.hashsalt": "foveate",
            "font.family": "sans-serif",
            "font.size": 10,
        }
        with matplotlib.rc_context(style):
            for name, figure in (("turns", _turns), ("stores", _stores)):
                drawn = figure(peers, values, sizes, theme)
                if drawn is None:
                    continue
                path = folder / f"peers-{name}-{scheme}.svg"
                drawn.savefig(path, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight")
                written.append(path)
    return written


def _turns(peers: Sequence[Found], values: Values, sizes: Sizes, theme: dict[str, str]) -> Any:
    """Return a line for each library: the median turn of each block while the conversation grows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 5.2))
    axes = figure.add_subplot()
    ends: list[tuple[float, float, str, str]] = []
    for number, peer in enumerate(peers):
        took = values.get((peer.name, "turn"), [])
        if not took:
            continue
        starts = range(0, len(took), sizes.block)
        places = [min(start + sizes.block, len(took)) for start in starts]
        middles = [median(took[start : start + sizes.block]) for start in starts]
        color, width = _color(peer, number, theme), 2.6 if peer.name.startswith("foveate") else 1.3
        axes.plot(places, middles, color=color, linewidth=width, linestyle="--" if peer.is_limit else "-")
        ends.append((middles[-1], places[-1], peer.name.replace("`", ""), color))
    if not ends:
        return None
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.05)
    axes.set_xlim(0, sizes.turns)
    axes.set_xlabel("turns so far")
    axes.set_ylabel("CPU of a turn, ms")
    axes.grid(True, linewidth=0.6)
    _write_plain_numbers(axes.yaxis)
    spaced = 0.0
    for height, place, name, color in sorted(ends):  # A label is at least a twelfth of a decade above the one below.
        spaced = max(height, 0.05, spaced * 1.42)
        axes.annotate(name, (place, height), (sizes.turns * 1.02, spaced), color=color, va="center", fontsize=9)
    return figure


def _stores(peers: Sequence[Found], values: Values, sizes: Sizes, theme: dict[str, str]) -> Any:
    """Return a panel of bars for each cost of a store."""
    from matplotlib.figure import Figure

    kept = [peer for peer in peers if (peer.name, "append") in values]
    if not kept:
        return None
    figure = Figure(figsize=(8.6, 0.34 * len(kept) + 1.2))
    panels = figure.subplots(1, len(_BARS), sharey=True)
    names = [peer.name.replace("`", "") for peer in kept]
    colors = [_color(peer, number, theme, is_plain=True) for number, peer in enumerate(kept)]
    for axes, (measure, label) in zip(panels, _BARS.items(), strict=True):
        found = [values.get((peer.name, measure), [0.0]) for peer in kept]
        middles = [median(one) for one in found]
        below = [middle - min(one) for middle, one in zip(middles, found, strict=True)]
        above = [max(one) - middle for middle, one in zip(middles, found, strict=True)]
        axes.barh(names, middles, color=colors, xerr=(below, above), ecolor=theme["text"])
        axes.set_xscale("log")
        axes.set_xlabel(label)
        axes.grid(True, axis="x", linewidth=0.6)
        axes.set_axisbelow(True)
        _write_plain_numbers(axes.xaxis)
    panels[0].invert_yaxis()
    return figure


def _write_plain_numbers(axis: Any) -> None:
    """Label an axis with numbers such as 0.1 and 10, at powers of ten only."""
    from matplotlib.ticker import NullLocator

    axis.set_major_formatter(lambda value, _: f"{value:,g}")
    axis.set_minor_locator(NullLocator())


def _color(peer: Found, number: int, theme: dict[str, str], is_plain: bool = False) -> str:
    if peer.name.startswith("foveate"):
        return theme["ours"]
    return theme["limit"] if peer.is_limit or is_plain else _OTHERS[number % len(_OTHERS)]
