"""A real browser, where there is one: pages in frames of several widths, their pictures, colours and complaints."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
WIDTHS = (390, 768, 1600)

#: What is looked at in each frame; the script is the test's own, the pages have none.
PROBE = r"""
onload = () => {
  document.title = [...document.querySelectorAll("iframe")].map(({contentWindow: w}) => {
    const d = w.document, page = d.documentElement;
    const over = x => x.getBoundingClientRect().right > w.innerWidth + 1 && !x.closest(".scroll");
    const wide = [...d.querySelectorAll("main *")].filter(over).slice(0, 3).map(x => x.tagName + "." + x.className);
    const shade = Number(w.getComputedStyle(d.body).backgroundColor.match(/\d+/)[0]) < 128 ? "dark" : "light";
    return [page.scrollWidth, w.innerWidth, d.querySelectorAll("svg").length, shade, wide.join("|")].join(" ");
  }).join(";");
}
"""


def browsed(pages: Sequence[str], folder: Path, *, dark: bool = False) -> dict[tuple[int, int], int]:
    """(page, width) → how many pictures a browser sees; each page is no wider than its frame, and of the colours asked
    for, and no page makes the browser complain."""
    frames = []
    for i, page in enumerate(pages):
        (folder / f"page{i}.html").write_text(page, encoding="utf-8")
        frames += [(i, width) for width in WIDTHS]
    inner = "".join(
        f'<iframe src="page{i}.html" style="border:0;width:{w}px;height:900px"></iframe>' for i, w in frames
    )
    outer = folder / "seen.html"
    outer.write_text(f"<!doctype html><title></title>{inner}<script>{PROBE}</script>", encoding="utf-8")
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    ended = subprocess.run(
        [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
         "--allow-file-access-from-files", f"--user-data-dir={folder / 'browser'}", *scheme,
         "--window-size=1700,2000", "--dump-dom", f"file://{outer}"],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    complaints = [line for line in ended.stderr.splitlines() if "CONSOLE" in line]
    assert not complaints, complaints
    title = re.search(r"<title>(.*?)</title>", ended.stdout)
    assert title is not None
    seen = {}
    for frame, said in zip(frames, title[1].split(";"), strict=True):
        wide, room, pictures, shade, over = said.split(" ", 4)
        assert (int(room), shade) == (frame[1], "dark" if dark else "light"), said
        assert int(wide) <= int(room) and not over, (frame, said)
        seen[frame] = int(pictures)
    return seen
