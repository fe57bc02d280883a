#!/usr/bin/python3
"""report.py RAW OUT -- the figures of a run as results.md and plots, in the directory OUT

Each ratio is taken within a round; what is shown is the median of the rounds, and the least and the most.
"""

import json
import pathlib
import statistics
import subprocess
import sys

from table import AT_LEAST, AT_MOST, DEVICES, RATIOS, UNITS, ZERO, Ratio

HERE = pathlib.Path(__file__).resolve().parent
HEAD = """# What was measured

Made by `make bench`, not by hand; docs/performance.md says how to read it. Medians of {rounds} rounds, in which all
tools take turns, with the least and the most of them.

"""
PLOTS = """
## Plots

How far each ratio is from what is wanted: from 1 on it is reached.

![ratios](ratios.svg)

![rates over TCP](rates.svg)

![rates over soft-RoCE and soft-iWARP in the VM](rdma.svg)
"""


class Spread:
    def __init__(self, values):
        self.median, self.least, self.most = statistics.median(values), min(values), max(values)

    def text(self, scale=1, digits=2):
        median, least, most = (f"{value * scale:.{digits}f}" for value in (self.median, self.least, self.most))
        return f"{median} | {least} .. {most}"


def of_device(ratio, device):
    """The line of the table with {device} filled in."""
    fill = str if device is None else lambda text: text.format(device=device)
    (ours, what), (theirs, other) = ratio.ours, ratio.theirs
    return Ratio(fill(ratio.title), (fill(ours), what), (fill(theirs), other), ratio.sense, ratio.wanted)


def chosen(parts):
    """(heading, ratios, rounds) of what has been measured."""
    (tcp, native), (vm, guest) = RATIOS
    if "native" in parts:
        yield tcp, native, parts["native"]
    for device in DEVICES:
        if device in parts:
            yield vm.format(device=device), [of_device(ratio, device) for ratio in guest], parts[device]


def compare(ratio, rounds):
    """None: one of the two could not be measured in any round."""
    (ours, what), (theirs, other) = ratio.ours, ratio.theirs
    both = [one for one in rounds if ours in one and theirs in one]
    return Spread([one[ours][what] / one[theirs][other] for one in both]) if both else None


def reached(ratio, spread):
    if ratio.sense is None:
        return None
    return spread.median >= ratio.wanted if ratio.sense == AT_LEAST else spread.median <= ratio.wanted


def verdict(met):
    return {None: "", True: "reached", False: "**missed**"}[met]


def score(ratio, value):
    """How often what is wanted is reached."""
    return value / ratio.wanted if ratio.sense == AT_LEAST else ratio.wanted / value


def ratios(parts):
    """Lines for the table, and (title, score, spread of it, met) of what something is wanted of."""
    lines, scores = [], []
    for _, table, rounds in chosen(parts):
        for ratio in table:
            spread = compare(ratio, rounds)
            if spread is None:
                lines.append(f"| {ratio.title} | | | | not measured |")
                continue
            met = reached(ratio, spread)
            wanted = "" if met is None else f"{'at least' if ratio.sense == AT_LEAST else 'at most'} {ratio.wanted}"
            lines.append(f"| {ratio.title} | {spread.text()} | {wanted} | {verdict(met)} |")
            if met is not None:
                ends = sorted(score(ratio, value) for value in (spread.least, spread.most))
                scores.append((ratio.title, score(ratio, spread.median), *ends, met))
    for title, (name, what) in ZERO if "native" in parts else ():
        spread = Spread([one[name][what] for one in parts["native"] if name in one])
        met = spread.median == 0
        lines.append(f"| {title} | {spread.text()} | 0 | {verdict(met)} |")
        scores.append((title, float(met), float(met), float(met), met))
    return lines, scores


def figures(rounds):
    """name, what, spread of all that was measured."""
    for name, values in {name: values for one in reversed(rounds) for name, values in one.items()}.items():
        for what in values:
            yield name, what, Spread([one[name][what] for one in rounds if name in one])


def unit(name, what):
    return UNITS["connections" if name == "connections" else what]


def figure_lines(rounds):
    for name, what, spread in figures(rounds):
        counted = unit(name, what)
        yield f"| {name} | {what} | {spread.text(counted.scale, counted.digits)} | {counted.name} |"


def table(head, lines):
    columns = [column.strip() for column in head.split("|")]
    rule = "|".join("---" for _ in columns)
    return "\n".join([f"| {' | '.join(columns)} |", f"|{rule}|", *lines, ""])


def page(raw):
    lines, scores = ratios(raw["parts"])
    facts = raw["machine"] | {"versions": ", ".join(f"{name} {is_}" for name, is_ in raw["versions"].items())}
    text = [HEAD.format(rounds=raw["rounds"]), table(" | ", [f"| {key} | {value} |" for key, value in facts.items()])]
    text += ["\n## Ratios\n\n", table("ratio | median | least .. most | wanted | ", lines)]
    for heading, _, rounds in chosen(raw["parts"]):
        text += [f"\n## {heading}\n\n", table("what | figure | median | least .. most | unit", figure_lines(rounds))]
    return "".join([*text, PLOTS]), scores


# ---- plots: lines of label, value, least, most, colour ----

OURS, THEIRS, MET, MISSED = "0x2166ac", "0x999999", "0x1a9850", "0xd73027"
OF_OTHERS = ("iperf3", "socat", "rsync", "ucx", "ib_write")


def plot(title, axis, rows, data, out):
    if not rows:
        return
    lines = ["\t".join(map(str, (f'"{label}"', *numbers, colour))) for label, *numbers, colour in reversed(rows)]
    data.write_text("\n".join(lines) + "\n")
    settings = f"data='{data}'; out='{out}'; rows={len(rows)}; heading='{title}'; axis='{axis}'; one={int(axis == '')}"
    subprocess.check_call(["gnuplot", "-e", settings, HERE / "bars.gp"])


def rates(rounds, scale):
    for name, what, spread in figures(rounds):
        if what == "rate" and name != "connections":
            colour = THEIRS if any(tool in name for tool in OF_OTHERS) else OURS
            yield name, *(value * scale for value in (spread.median, spread.least, spread.most)), colour


def write(raw, data, out):
    """data: the directory for what gnuplot reads."""
    text, scores = page(raw)
    (out / "results.md").write_text(text)
    parts = raw["parts"]
    native = list(rates(parts.get("native", []), 1)) if "native" in parts else []
    rdma = [row for device in DEVICES if device in parts for row in rates(parts[device], 1000)]
    compared = [(title, *numbers, MET if met else MISSED) for title, *numbers, met in scores]
    plot("Ratio to what is wanted (1: reached)", "", compared, data / "ratios.tsv", out / "ratios.svg")
    plot("Over TCP on one machine", "GB/s", native, data / "rates.tsv", out / "rates.svg")
    plot("Soft-RoCE and soft-iWARP, in the emulated VM", "MB/s", rdma, data / "rdma.tsv", out / "rdma.svg")
    print(text.partition("## Ratios\n")[2].partition("\n## ")[0])
    missed = [title for title, *_, met in scores if not met]
    print(f"{len(scores) - len(missed)} reached, {len(missed)} missed: {out / 'results.md'}")


if __name__ == "__main__":
    directory = pathlib.Path(sys.argv[2])
    write(json.loads(pathlib.Path(sys.argv[1]).read_text()), directory, directory)
