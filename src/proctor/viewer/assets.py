"""The files of the page: one script, a style sheet, an HTML frame, an icon."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

# In the order of their dependencies. They become one script, because modules do not load from file:// addresses.
SCRIPTS = (
    "elements.js",
    "figures.js",
    "metrics.js",
    "outcomes.js",
    "address.js",
    "filter.js",
    "server_data.js",
    "file_data.js",
    "table.js",
    "prompt.js",
    "answer.js",
    "episode.js",
    "review.js",
    "difference.js",
    "plots.js",
    "run_list.js",
    "run_page.js",
    "sample_page.js",
    "comparison_page.js",
    "leaderboard.js",
    "keys.js",
    "page.js",
)
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "media-src": "'self'",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
}


@cache
def page_files() -> dict[str, tuple[str, bytes]]:
    """Name -> media type, content."""
    scripts = "\n".join(f"// {name}\n{_read(name)}" for name in SCRIPTS)
    return {
        "index.html": ("text/html", _read("index.html").encode()),
        "page.js": ("text/javascript", f'"use strict";\n(() => {{\n{scripts}}})();\n'.encode()),
        "page.css": ("text/css", _read("page.css").encode()),
        "icon.svg": ("image/svg+xml", _read("icon.svg").encode()),
    }


def exported_page() -> str:
    """The frame of an exported page, with the policy that a server would send."""
    policy = "; ".join(f"{key} {value}" for key, value in POLICY.items())
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    page = page_files()["index.html"][1].decode()
    return page.replace('name="proctor-data" content="server"', 'name="proctor-data" content="files"').replace(
        "<title>", meta + "<title>"
    )


def _read(name: str) -> str:
    return (files("proctor.viewer") / "page" / name).read_text(encoding="utf-8")
