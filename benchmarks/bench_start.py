"""Measure `wsap --help` and `wsap plugins` relative to a click program that does nothing.

    python benchmarks/bench_start.py [--rounds 40] [--json]

All programs alternate, so that load on the machine affects them alike. The bare program is a click group with as many
commands as `wsap`, started in the same way. Goals: `wsap --help` takes at most 1.3 times as long, `wsap plugins` 2.0
times at a terminal and 1.5 times in a pipe or with `--json`. The catalogue is built before the clock starts; building
it is measured separately, once per round.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HEAVY = (
    "crafter",
    "jinja2",
    "litellm",
    "numpy",
    "pluggy",
    "pydantic",
    "rich",
    "sqlalchemy",
    "sqlmodel",
    "wsap_crafter",
    "wsap_nexus",
)
BARE = '''
import click

@click.group(context_settings={{"help_option_names": ["-h", "--help"]}})
@click.version_option("1.0")
@click.option("--debug", is_flag=True, help="Show where an error happened.")
def main(debug):
    """A program that does nothing."""

for name in {names!r}:
    main.command(name, help="One line about this command.")(lambda: None)
'''
MODULES = """
import sys
from wsap_core.cli import main
code = main(sys.argv[1:])
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
sys.exit(code)
"""


def wsap() -> str:
    """Return the path of this Python's `wsap`."""
    beside = Path(sys.executable).with_name("wsap")
    found = str(beside) if beside.exists() else shutil.which("wsap")
    if not found:
        sys.exit("`wsap` is not installed; install the kernel first: pip install -e .")
    return found


def bare_program(folder: Path, names: list[str]) -> list[str]:
    """Write the bare program with a launcher like pip's, and return its command."""
    (folder / "bare_click.py").write_text(BARE.format(names=names), encoding="utf-8")
    starter = folder / "bare"
    starter.write_text(
        f"#!{sys.executable}\nimport sys\nfrom bare_click import main\nsys.exit(main())\n", encoding="utf-8"
    )
    starter.chmod(0o755)
    return [str(starter), "--help"]


def piped(command: list[str], env: dict[str, str]) -> None:
    """Run a command with its output in a pipe."""
    subprocess.run(command, env=env, capture_output=True, check=True)


def at_terminal(command: list[str], env: dict[str, str]) -> None:
    """Run a command with its output at a pseudo-terminal."""
    import pty  # not everywhere

    master, slave = pty.openpty()
    process = subprocess.Popen(command, env=env, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    try:
        while os.read(master, 65536):
            pass
    except OSError:  # on Linux: the other end is closed
        pass
    os.close(master)
    if process.wait():
        raise subprocess.CalledProcessError(process.returncode, command)


def measure(rounds: int) -> dict[str, list[float]]:
    """Return the milliseconds of every run of every program."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = {**os.environ, "WSAP_HOME": str(folder / "home")}
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed `wsap` has its modules compiled
        program = wsap()
        listing = subprocess.run([program, "--help"], env=env, capture_output=True, text=True, check=True).stdout
        names = [line.split()[0] for line in listing.partition("\nCommands:\n")[2].partition("\n\n")[0].splitlines()]
        cases: dict[str, tuple[Callable[[list[str], dict[str, str]], None], list[str]]] = {
            "bare click program": (piped, bare_program(folder, names)),
            "wsap --help": (piped, [program, "--help"]),
            "wsap plugins, piped": (piped, [program, "plugins"]),
            "wsap plugins --json": (piped, [program, "plugins", "--json"]),
            "bare click program, terminal": (at_terminal, bare_program(folder, names)),
            "wsap plugins, terminal": (at_terminal, [program, "plugins"]),
            "wsap plugins --refresh": (piped, [program, "plugins", "--refresh"]),
        }
        for run, command in cases.values():  # byte code and file caches
            run(command, env)
        times: dict[str, list[float]] = {case: [] for case in cases}
        for _ in range(rounds):
            for case, (run, command) in cases.items():
                began = time.perf_counter()
                run(command, env)
                times[case].append((time.perf_counter() - began) * 1e3)
        return times


def loaded(*words: str) -> list[str]:
    """Return the heavy packages in `sys.modules` after `wsap WORDS`, with an existing catalogue."""
    with tempfile.TemporaryDirectory() as name:
        env = {**os.environ, "WSAP_HOME": name}
        command = [sys.executable, "-c", MODULES, *words]
        subprocess.run(command, env=env, capture_output=True, check=True)
        modules = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stderr.split()
    return [module for module in HEAVY if module in modules]


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    options = parser.parse_args()
    times = measure(options.rounds)
    report: dict[str, dict[str, Any]] = {}
    for case, values in times.items():
        against = times["bare click program, terminal" if case.endswith("terminal") else "bare click program"]
        ratios = [value / other for value, other in zip(values, against, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        report[case] = {
            "median_ms": round(statistics.median(values), 1),
            "ratio_of_medians": round(statistics.median(values) / statistics.median(against), 3),
            "ratio_quartiles": [round(r, 3) for r in (low, middle, high)],
        }
    modules = {" ".join(["wsap", *words]): loaded(*words) for words in (["--help"], ["plugins"], ["plugins", "--json"])}
    if options.json:
        print(json.dumps({"rounds": options.rounds, "cases": report, "heavy_modules_loaded": modules}, indent=2))
        return 0
    for case, row in report.items():
        spread = " ".join(f"{r:.2f}" for r in row["ratio_quartiles"])
        times_bare = f"{row['ratio_of_medians']:.2f} times (quartiles of ratios: {spread})"
        print(f"{case:30}  {row['median_ms']:6.1f} ms  {times_bare}")
    for command, found in modules.items():
        print(f"{command:30}  heavy modules loaded: {', '.join(found) or 'none'} (of {', '.join(HEAVY)})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
