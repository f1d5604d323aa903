#!/usr/bin/env python3
"""Follows every link within the built site to its anchor: links.py FOLDER. Fails if one leads nowhere."""
import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors |= {values[key] for key in ("id", "name") if values.get(key)}
        for key in ("href", "src"):
            if values.get(key):
                self.links.append(values[key])


def main(folder):
    root = pathlib.Path(folder).resolve()
    pages = {path: Page(path.read_text(errors="replace")) for path in root.rglob("*.html")}
    broken, followed = [], 0
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            followed += 1
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            anchor = urllib.parse.unquote(parts.fragment)
            if not target.exists() or (anchor and target in pages and anchor not in pages[target].anchors):
                broken.append(f"{path.relative_to(root)}: {link}")
    print("\n".join(sorted(set(broken))))
    print(f"{followed} links of {len(pages)} pages, {len(set(broken))} of them broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
