"""A chart as SVG: a line for each row, a dot for each system, on a logarithmic axis of ratios."""

import math
from html import escape

WIDTH, LEFT, RIGHT, LINE, TOP = 900, 270, 30, 26, 64
COLOURS = ("#d1495b", "#00798c", "#8d6a9f", "#edae49", "#5b8e7d", "#30638e", "#777777", "#b56576", "#2f2f2f")


def draw(title: str, labels: list[str], dots: list[dict[str, float]], goals: list[float | None]) -> str:
    """The chart.

    Args:
        title: What the axis is.
        labels: Of the rows.
        dots: For each row a ratio for each system.
        goals: For each row where a mark is drawn.
    """
    systems = list(dict.fromkeys(name for row in dots for name in row))
    ratios = [ratio for row in dots for ratio in row.values()] + [goal for goal in goals if goal is not None]
    low, high = math.floor(math.log10(min(ratios))), math.ceil(math.log10(max(ratios)))
    bottom = TOP + LINE * len(labels)

    def x(ratio: float) -> float:
        return LEFT + (math.log10(ratio) - low) / max(high - low, 1) * (WIDTH - LEFT - RIGHT)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 40}" font-family="sans-serif" '
        f'font-size="12" fill="#222"><rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="10" y="18" font-size="14" font-weight="bold">{escape(title)}</text>',
    ]
    place = 10.0
    for name, colour in zip(systems, COLOURS, strict=False):
        parts.append(f'<circle cx="{place + 5:.0f}" cy="36" r="5" fill="{colour}"/>')
        parts.append(f'<text x="{place + 14:.0f}" y="40">{escape(name)}</text>')
        place += 30 + 6.4 * len(name)
    parts.append(f'<text x="{place:.0f}" y="40">| goal: to be right of 1</text>')
    for power in range(low, high + 1):
        parts.append(
            f'<line x1="{x(10**power):.1f}" x2="{x(10**power):.1f}" y1="{TOP - 8}" y2="{bottom}" stroke="#ccc"/>'
        )
        parts.append(f'<text x="{x(10**power):.1f}" y="{bottom + 18}" text-anchor="middle">{10**power:g}</text>')
    for i, (label, row, goal) in enumerate(zip(labels, dots, goals, strict=True)):
        y = TOP + LINE * i + LINE / 2
        parts.append(f'<text x="{LEFT - 12}" y="{y + 4:.0f}" text-anchor="end">{escape(label)}</text>')
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.0f}" y2="{y:.0f}" stroke="#eee"/>')
        if goal is not None:
            parts.append(f'<path d="M{x(goal):.1f} {y - 9:.0f}v18" stroke="#222" stroke-width="2"/>')
        for name, ratio in row.items():
            ring = ' stroke="#222" stroke-width="1.5"' if name == systems[0] else ' fill-opacity="0.85"'
            colour = COLOURS[systems.index(name)]
            parts.append(f'<circle cx="{x(ratio):.1f}" cy="{y:.0f}" r="5" fill="{colour}"{ring}/>')
    return "\n".join([*parts, "</svg>"]) + "\n"
