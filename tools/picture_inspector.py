"""Draws the inspector's pictures for the README and the docs: three pages, each light and dark.

    .venv/bin/pip install pillow && .venv/bin/python tools/picture_inspector.py

Needs a Chromium (CONTRIBUTING.md). The pages show the project's demo recording, stored as an agent would have.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "inspector"))

from browsing import chromium_path, wait_for_jobs
from prepared import fill_sample
from serving import served

from foveate.inspector.app import app_with
from foveate.inspector.sources import StoreSource

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "images"
PAGES = {
    "conversation": "/c/store/granary?turn=76",
    "plan": "/c/store/granary/plan?policy=frugal&window=24000",
    "spending": "/c/store/granary/spending",
}
WIDTH, HEIGHT = 1180, 820
QUALITY = 82


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        store = f"sqlite:///{folder}/chats.db"
        fill_sample(store)
        browser = playwright.chromium.launch(executable_path=chromium_path())
        with served(app_with(sources=[StoreSource(store, title="chats.db")])) as site:
            for scheme in ("light", "dark"):
                page = browser.new_page(
                    viewport={"width": WIDTH, "height": HEIGHT},
                    color_scheme=scheme,
                    reduced_motion="reduce",
                    device_scale_factor=1.5,
                )
                for name, target in PAGES.items():
                    page.goto(site + target)
                    wait_for_jobs(page)
                    page.wait_for_timeout(2_000)  # The figures of a conversation are computed in the background.
                    path = FOLDER / f"inspector-{name}-{scheme}.webp"
                    Image.open(io.BytesIO(page.screenshot())).save(path, quality=QUALITY, method=6)
                    print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")
        browser.close()


if __name__ == "__main__":
    main()
