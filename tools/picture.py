"""Draw docs/images/play-crafter.svg: the live view of `wsap play crafter` at one step of a real run.

    python tools/picture.py                     the picture in the README
    python tools/picture.py --seed 5 --step 300 --output other.svg

Plays and records the run in a temporary folder, and exports the terminal view by rich. Run it again when the view
changes.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import re
import tempfile
from pathlib import Path

from rich.console import Console
from rich.layout import Layout
from rich.terminal_theme import MONOKAI

from wsap_core.host import PluginHost
from wsap_nexus.runs.plan import RunPlan, plan_seats
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.session import start
from wsap_nexus.runs.store import open_store
from wsap_nexus.runs.views.restoring import Runs, view_of_run
from wsap_nexus.terminal.live import LiveView
from wsap_nexus.terminal.look import draw_view

ROOT = Path(__file__).resolve().parent.parent
SIZE = (120, 36)


def draw(game: str, agent: str | None, seed: int, step: int, size: tuple[int, int] = SIZE) -> str:
    """Return the live view at a step of a run as SVG, of a world that lives its view after so many ticks; `size` in
    columns and rows."""
    console = Console(
        file=io.StringIO(), width=size[0], height=size[1], record=True, force_terminal=True, color_system="truecolor",
        legacy_windows=False,
    )  # fmt: skip
    host = PluginHost.discovered()
    spec = host.games.get(game)
    lives = "lives" in spec.abilities
    plan = RunPlan(game, () if lives else plan_seats(spec, agent=agent), seed, step if lives else None, lives=lives)
    with tempfile.TemporaryDirectory() as folder, open_store(str(Path(folder) / "wsap.db")) as store:
        controls = Controls()
        view = LiveView(console, controls, flush=store.writer.flush)
        controls.pace = None
        with start(plan, host, store, controls=controls) as session:
            view.follow(session.run, spec)
            session.run.observe(view.observe)
            session.run.observe(lambda taken: controls.stop() if taken.step == step else None)
            asyncio.run(session.play())
            asyncio.run(view.take_committed())
            controls.pace = 20.0  # the default at a terminal
            if lives:
                seen = view_of_run(spec, Runs(host, store.repository), "last", {})
                console.print(Layout(draw_view(seen)), height=size[1])
            else:
                console.print(view.screen(*size), height=size[1])
    return _slim(console.export_svg(title=f"wsap play {game} --seed {seed}", theme=MONOKAI))


def _slim(svg: str) -> str:
    """Return the SVG without web fonts, and with two decimals."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = svg.replace("Fira Code", "DejaVu Sans Mono, Menlo, Consolas")
    return re.sub(r"(\d+\.\d{2})\d+", r"\1", svg)


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--game", default="crafter")
    parser.add_argument("--agent")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--step", type=int, default=90)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "images" / "play-crafter.svg")
    given = parser.parse_args()
    svg = draw(given.game, given.agent, given.seed, given.step)
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(svg, encoding="utf-8")
    print(f"{given.output.name}: {len(svg.encode()) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
