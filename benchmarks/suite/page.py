"""The page docs/benchmarks.md and its charts, from a result of run.py; the text around them is written by hand."""

import json
import re
from typing import Any

from suite import chart
from suite.rows import ROWS, TABLES, TEAM, Goal, Row, Table
from suite.servers import ROOT
from suite.systems import SYSTEMS
from suite.units import amount, digits, median, ratio

RESULT = ROOT / "benchmarks" / "results" / "latest.json"
PAGE = ROOT / "docs" / "benchmarks.md"
Result = dict[str, Any]


def write(result: Result) -> None:
    """Writes the page and its charts."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), result), encoding="utf-8")
    for name, svg in charts(result).items():
        (ROOT / "docs" / name).write_text(svg, encoding="utf-8")


def filled(text: str, result: Result) -> str:
    """A page's text, with each generated part made anew: what is between `<!-- NAME: … -->` and `<!-- end -->`."""
    parts = {
        "run": run_part,
        "process": lambda result: table_part(TABLES[0], result),
        "remote": lambda result: table_part(TABLES[1], result),
        "rest": lambda result: table_part(TABLES[2], result),
        "published": lambda result: table_part(TABLES[3], result),
        "service": lambda result: table_part(TABLES[4], result),
        "goals": goals_part,
        "answers": answers_part,
        "memory": memory_part,
    }

    def part(match: re.Match[str]) -> str:
        return f"{match[1]}\n{parts[match[2]](result)}\n{match[3]}"

    text, count = re.subn(r"(<!-- (\w+): [^>]*-->)\n.*?(<!-- end -->)", part, text, flags=re.DOTALL)
    if count != len(parts):
        raise ValueError(f"{PAGE} has {count} generated parts: it must have each of {', '.join(parts)}")
    return text


def text_of(result: Result) -> str:
    """A result as JSON, samples with four digits and in one line."""
    for systems in result["rows"].values():
        for measured in systems.values():
            measured |= {key: _short(value) for key, value in measured.items()}
    text = json.dumps(result, indent=1)
    return re.sub(r"\[[^\[\]{}]*\]", lambda match: " ".join(match[0].split()), text) + "\n"


def _short(value: Any) -> Any:
    if isinstance(value, list):
        return [_short(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def line(name: str, row: Row, systems: Result) -> str:
    """What a run prints of a row."""
    cells = []
    for system, measured in systems.items():
        seconds = median(systems, system)
        text = "–" if seconds is None else digits(amount(row, seconds))
        memory = f" ({measured['memory']:.0f} MB)" if "memory" in measured else ""
        cells.append(f"{system} {text}{memory}")
    lines = [f"{name}, {row.unit}: {', '.join(cells)}", "; ".join(_goal(systems, goal) for goal in row.goals)]
    failures = [f"{system}: {measured['error']}" for system, measured in systems.items() if "error" in measured]
    return "\n    ".join([*filter(None, lines), *failures])


def _goal(systems: Result, goal: Goal) -> str:
    measured = ratio(systems, goal)
    text = "not measured" if measured is None else f"{measured[0]:.2f} of {measured[1]}"
    return f"{goal.system}{' memory' if goal.memory else ''}: {text}, goal {goal.ratio:.2f}"


# ----------------------------------------------------------------------------------------------------- generated parts
def run_part(result: Result) -> str:
    """When, where and with what."""
    run = result["run"]
    versions = ", ".join(f"{package} {number}" for package, number in sorted(result["versions"].items()))
    paragraphs = [
        f"{run['date']}, commit {run['commit']}{' with changes' if run['changed'] else ''}, {run['cores']} cores of an "
        f"{run['processor']}, Python {run['python']}, plans walked by {run['plans']}. "
        f"Load of the machine before and after: {run['load'][0]:g} and "
        f"{run['load after'][0]:g}; the run took {run['seconds']} s. {versions}.",
        *[
            "**The machine did other work too**: in-process times of one thread are CPU time."
            for _ in range(run["busy"])
        ],
        *[f"Absent: {SYSTEMS[system].label}: {reason}." for system, reason in result["absent"].items()],
        *[
            f"Not measured: {SYSTEMS[system].label}, {ROWS[name].label}: {measured['error']}."
            for name, systems in result["rows"].items()
            for system, measured in systems.items()
            if "error" in measured and system not in result["absent"]
        ],
    ]
    return "\n\n".join("\n".join(_wrapped(paragraph)) for paragraph in paragraphs)


def table_part(table: Table, result: Result) -> str:
    """Medians, a row for each program and a column for each system."""
    rows = {name: row for name, row in table.rows.items() if name in result["rows"]}
    if not rows:
        return "This run has no such row."
    columns = list(dict.fromkeys(system for row in rows.values() for system in row.systems))
    lines = [
        "| | | " + " | ".join(SYSTEMS[column].label for column in columns) + " |",
        "| --- " * (len(columns) + 2) + "|",
    ]
    for name, row in rows.items():
        systems = result["rows"][name]
        cells = [_cell(row, systems, column) for column in columns]
        lines.append(f"| {row.label} | {row.unit} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(row: Row, systems: Result, column: str) -> str:
    seconds = median(systems, column)
    if seconds is None:
        return "–" if column in row.systems else ""
    return digits(amount(row, seconds))


def goals_part(result: Result) -> str:
    """A line for each goal: the ratio, and whether it is reached."""
    lines = ["| | ours | compared with | ratio | goal | |", "| --- | --- | --- | --- | --- | --- |"]
    for table in TABLES:
        for name, row in table.rows.items():
            for goal in row.goals:
                measured = ratio(result["rows"].get(name, {}), goal)
                if measured is None:
                    continue
                label = row.label.removesuffix(", an op") + (", peak memory" if goal.memory else "")
                reached = "reached" if measured[0] <= goal.ratio else f"{measured[0] / goal.ratio:.2f} times the goal"
                cells = [label, SYSTEMS[goal.system].label, SYSTEMS[measured[1]].label]
                lines.append(f"| {' | '.join(cells)} | {measured[0]:.2f} | ≤ {goal.ratio:.2f} | {reached} |")
    return "\n".join(lines)


def answers_part(result: Result) -> str:
    """The time until the first, tenth and thousandth answer."""
    lines = []
    for table in TABLES:
        rows = {name: row for name, row in table.rows.items() if row.callers == row.threads == 1 and row.unit != "GB/s"}
        if not rows.keys() & result["rows"].keys():
            continue
        columns = list(dict.fromkeys(system for row in rows.values() for system in row.systems))
        lines += ["| " + " | ".join(["", *[SYSTEMS[column].label for column in columns]]) + " |"]
        lines += ["| --- " * (len(columns) + 1) + "|"]
        for name, row in rows.items():
            cells = []
            for column in columns:
                measured = result["rows"].get(name, {}).get(column, {})
                if "first" not in measured:
                    cells.append("")
                    continue
                numbers = [digits(measured[key] * 1e3) for key in ("first", "tenth", "thousandth")]
                cells.append(" / ".join(numbers[:2]) + (" / ~" if measured["extrapolated"] else " / ") + numbers[2])
            lines.append(f"| {row.label.removesuffix(', an op')} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines).rstrip()


def memory_part(result: Result) -> str:
    """Peak memory, MB."""
    rows = {name: row for table in TABLES for name, row in table.rows.items() if row.memory and name in result["rows"]}
    systems = [result["rows"][name] for name in rows]
    columns = [name for name in SYSTEMS if any("memory" in measured.get(name, {}) for measured in systems)]
    lines = [
        "| | " + " | ".join(SYSTEMS[column].label for column in columns) + " |",
        "| --- " * (len(columns) + 1) + "|",
    ]
    for row, measured in zip(rows.values(), systems, strict=True):
        cells = [f"{measured[c]['memory']:.0f}" if "memory" in measured.get(c, {}) else "" for c in columns]
        lines.append(f"| {row.label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def charts(result: Result) -> dict[str, str]:
    """The charts by file name: for each row every system's time over that of our best way."""
    drawn = {}
    for table, file in zip(TABLES, ("benchmarks-process.svg", "benchmarks-remote.svg"), strict=False):
        labels, dots, goals = [], [], []
        for name, row in table.rows.items():
            systems = result["rows"].get(name, {})
            medians = {system: number for system in row.systems if (number := median(systems, system)) is not None}
            ours = [system for system in ("function", "eager", "remote-function", "remote") if system in medians]
            if not ours or len(medians) == 1:
                continue
            best = min(ours, key=medians.__getitem__)
            labels.append(row.label.removesuffix(", an op"))
            names = {best: "Teletape, its better way"}
            others = {system: number for system, number in medians.items() if system not in (*ours, *TEAM)}
            shown = {best: medians[best], **others}
            dots.append({names.get(s, SYSTEMS[s].label): number / medians[best] for s, number in shown.items()})
            goal = next((g for g in row.goals if g.system == best and not g.memory), None)
            peers = [medians[peer] for peer in goal.peers if peer in medians] if goal else []
            goals.append(goal.ratio * min(peers) / medians[best] if peers else None)
        drawn[file] = chart.draw(
            f"{table.title}: time over that of Teletape; left of 1 is faster than Teletape", labels, dots, goals
        )
    return drawn


def _wrapped(text: str) -> list[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) + 1 > 120:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
