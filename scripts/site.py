"""Lays out the source of the documentation's site for mdBook: `site.py FOLDER`.

The chapters are the pages that docs/README.md lists, in its order, and at the end of each shelf the pages that only these link to.
Pages keep their place, and other files that a page links to are copied: a link that works in the repository works in the site.
"""

import os
import pathlib
import re
import shutil
import sys

LIST = "docs/README.md"


def links(text):
    """Yields the local targets of a page's links and pictures, outside fenced blocks."""
    for part in re.split(r"^```.*?^```$", text, flags=re.MULTILINE | re.DOTALL):
        for target in re.findall(r"\]\(([^)\s]+)\)", part):
            if "://" not in target and not target.startswith(("#", "<", "mailto:")):
                yield target.partition("#")[0]


def resolved(page, target):
    return os.path.normpath(os.path.join(os.path.dirname(page), target))


def main():
    folder = pathlib.Path(sys.argv[1])
    shelves, seen = [], ["README.md", LIST]
    for line in pathlib.Path(LIST).read_text().splitlines():
        if line.startswith("## "):
            shelves.append((line[3:], []))
        for target in links(line) if shelves else []:
            page = resolved(LIST, target)
            if page.endswith(".md") and page not in seen:
                seen.append(page)
                shelves[-1][1].append(page)

    shelf_of = {page: chapters for _, chapters in shelves for page in chapters}
    files = set()
    # `seen` grows while it is read.
    for page in seen:
        for target in links(pathlib.Path(page).read_text()):
            file = resolved(page, target)
            if not file.endswith(".md"):
                files.add(file)
            elif file not in seen:
                seen.append(file)
                shelf_of[file] = shelf_of.get(page, shelves[-1][1])
                shelf_of[file].append(file)

    pages = map(str, pathlib.Path("docs").rglob("*.md"))
    if missing := set(pages) - set(seen):
        sys.exit(f"no page links to {', '.join(sorted(missing))}: add a row to {LIST}")

    for file in [*seen, *sorted(files)]:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, folder / file)

    def entry(page):
        title = re.search(r"^# (.+)$", pathlib.Path(page).read_text(), flags=re.MULTILINE)
        return f"- [{title[1].replace('`', '')}]({page})"

    lines = ["# Summary", "", "[Sparkgate](README.md)", f"[All pages]({LIST})"]
    for heading, chapters in shelves:
        lines += ["", f"# {heading[0].upper()}{heading[1:]}", "", *map(entry, chapters)]
    (folder / "SUMMARY.md").write_text("\n".join(lines) + "\n")


main()
