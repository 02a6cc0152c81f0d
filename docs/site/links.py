"""Links of the pages that lead to files beside docs/ lead to their copies inside the site (a hook of MkDocs)."""

from typing import Any

PAGES = {"PRIVACY.md": "site-privacy.md", "CHANGELOG.md": "site-changelog.md", "SECURITY.md": "site-security.md"}


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """The page's text with such links turned."""
    up = "../" * page.file.src_uri.count("/")
    for name, copy in PAGES.items():
        markdown = markdown.replace(f"](../{name}", f"]({copy}").replace(f"]({up}../{name}", f"]({up}{copy}")
    return markdown
