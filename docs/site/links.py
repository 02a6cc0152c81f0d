"""Files beside docs/ have copies inside the site, and links lead to these (a hook of MkDocs)."""

from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGES = {
    "BENCHMARKS.md": "site-benchmarks.md",
    "PRIVACY.md": "site-privacy.md",
    "CHANGELOG.md": "site-changelog.md",
    "SECURITY.md": "site-security.md",
}


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """The page's text with such links turned; of a copy, the text of its file, whose links MkDocs checks so."""
    up = "../" * page.file.src_uri.count("/")
    for name, copy in PAGES.items():
        if page.file.src_uri == copy:
            markdown = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
    for name, copy in PAGES.items():
        markdown = markdown.replace(f"](../{name}", f"]({copy}").replace(f"]({up}../{name}", f"]({up}{copy}")
        markdown = markdown.replace(f"]({name}", f"]({copy}")
    return markdown
