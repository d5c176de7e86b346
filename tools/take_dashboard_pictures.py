"""Take the pictures of the dashboard for the documentation: two agents that play Crafter, on a laptop and on a phone.

    python tools/take_dashboard_pictures.py [SECONDS]

SECONDS is how long they play before (40). Needs Playwright and Chromium, as `nox -s dashboard` does.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parents[1] / "docs" / "images"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PICTURES = (("dashboard-stage.png", (1280, 800), "light"), ("dashboard-stage-phone.png", (390, 844), "dark"))


def main() -> None:
    """Take them."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 40.0
    browser = next(path for name in BROWSERS if (path := shutil.which(name)))
    with tempfile.TemporaryDirectory() as home:
        environ = {**os.environ, "WSAP_HOME": home}
        wsap = [sys.executable, "-m", "wsap_core", "nexus"]
        for name in ("ada", "bob", "cleo"):
            subprocess.run([*wsap, "agents", "add", name, "--title", name.title()], env=environ, check=True)
        command = [*wsap, "start", "--port", "0", "--json", "--pace", "4"]
        with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as nexus:
            try:
                assert nexus.stdout is not None
                url = json.loads(nexus.stdout.readline())["url"]
                token = (Path(home) / "nexus.token").read_text(encoding="ascii").strip()
                time.sleep(seconds)
                take(browser, url, token)
            finally:
                nexus.terminate()


def take(browser: str, url: str, token: str) -> None:
    """Take a picture of the stage at each size."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser)
        for name, (width, height), scheme in PICTURES:
            page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.add_init_script(f"sessionStorage.setItem('wsap-token', '{token}')")
            page.goto(url)
            page.locator(".scene img.frame").wait_for()
            page.wait_for_timeout(4000)  # for a thought and the thumbnails
            picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            picture.quantize(128).save(IMAGES / name, optimize=True)
        chromium.close()


if __name__ == "__main__":
    main()
