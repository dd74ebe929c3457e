"""The site's navigation has every page once, and no link of a document leads nowhere: on the site, or in the repository."""

import re
import tomllib
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SITE: dict[str, Any] = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
PAGES = sorted(DOCS.rglob("*.md"))
OTHERS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "SECURITY.md")]
MADE_BY_THE_BUILD = DOCS / "gallery"
"""Reports that `make docs` writes."""
LINK = re.compile(r"\]\(([^()\s]+(?:\([^()\s]*\)[^()\s]*)*)\)")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def pages_in(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    for entry in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from pages_in(entry)


def test_every_page_is_in_the_navigation_once():
    assert sorted(pages_in(SITE["nav"])) == sorted(str(page.relative_to(DOCS)) for page in PAGES)
    assert SITE["docs_dir"] == "docs"


def test_every_page_can_be_reached_from_the_overview():
    reached, waiting = set[Path](), [DOCS / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            waiting += [to for target in links(page) if (to := place(page, target)).suffix == ".md" and to in PAGES]
    assert sorted(set(PAGES) - reached) == []


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=name_of)
def test_its_links_lead_somewhere(page: Path):
    for target in links(page):
        to, anchor = place(page, target), target.partition("#")[2]
        if to.is_relative_to(MADE_BY_THE_BUILD):
            continue
        assert to.exists(), f"{target}: there is no such file"
        if page.is_relative_to(DOCS):
            assert to.is_relative_to(DOCS) and to.is_file(), f"{target}: not part of the site"
        assert not anchor or anchor in anchors(to), f"{target}: there is no such heading"


def links(page: Path) -> list[str]:
    """Return the targets of its links, except for those with a scheme."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`]*`", "", text)
    return [target for target in LINK.findall(text) if not re.match(r"[a-z]+:", target)]


def place(page: Path, target: str) -> Path:
    path = target.partition("#")[0]
    return (page.parent / path).resolve() if path else page


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the headings that have the same anchor on GitHub and on the site."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title) for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)]
    return frozenset(_of_github(title) for title in titles if _of_github(title) == _of_site(title))


def _of_github(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def _of_site(title: str) -> str:
    """As the extension toc of Python-Markdown."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
