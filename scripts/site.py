#!/usr/bin/env python3
"""The documentation as a site of static pages, in target/site: `make site`.

It copies the pages of this tree into one folder, adds the man pages, has Zensical make HTML of them, and checks the
result: every link leads to a page and a heading that exist, and no page loads anything from another host. The site
works from a folder, without a server.

    scripts/site.py            builds into target/site
    scripts/site.py --check    only checks the links of target/site
"""

import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "target" / "site-build"
SITE = ROOT / "target" / "site"
# Fixed, so that a new release changes nothing by itself.
ZENSICAL = "zensical==0.0.73"
# Zensical's search runs in a worker. Pages of a folder may not start one, and this runs it in a frame.
FRAME_WORKER = "iframe-worker@1.0.4"
FOLDERS = ["guide", "reference", "lab", "decisions"]
ROOT_PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "STYLE.md", "ARCHITECTURE.md", "SECURITY.md"]


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], text=True, capture_output=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.stdout}{done.stderr}")
    return done.stdout


def stage(pages):
    """Copies this tree's pages, so that links between them hold as they are."""
    for name in ROOT_PAGES:
        copy(ROOT / name, pages / name)
    for page in sorted((ROOT / "docs").glob("*.md")):
        copy(page, pages / "docs" / page.name)
    for folder in FOLDERS:
        for page in sorted((ROOT / "docs" / folder).rglob("*")):
            if page.suffix in {".md", ".svg", ".png"}:
                copy(page, pages / page.relative_to(ROOT))
    for name in ["site.css", "site.js"]:
        shutil.copy(ROOT / "docs" / "site" / name, pages / name)


def copy(page, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    if page.suffix != ".md":
        shutil.copy(page, target)
        return
    target.write_text(without_links_outside(page, page.read_text()))


def without_links_outside(page, text):
    """Links to files that are not part of the site become their text; links to a folder lead to its overview."""

    def link(match):
        label, target = match.groups()
        path, _, _ = target.partition("#")
        if not path or re.match(r"[a-z]+:", path):
            return match[0]
        file = (page.parent / path).resolve()
        if file == ROOT / "docs" / "decisions":
            return f"[{label}]({path}README.md)"
        known = file.suffix in {".md", ".svg", ".png"} and (
            file.parent == ROOT and file.name in ROOT_PAGES or ROOT / "docs" in file.parents
        )
        return match[0] if known else label

    parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    return "".join(
        part if part.startswith("```") else re.sub(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)", link, part)
        for part in parts
    )


def title(page):
    return re.search(r"^# (.*)$", page.read_text(), re.M)[1].replace("`", "")


def man_pages(pages):
    """The man pages as the program writes them; returns their places."""
    run(program(), "manual", "--date", "2026-01-01", WORK / "manual")
    places = []
    for page in sorted((WORK / "manual").glob("man*/*.[1-9]")):
        body = run("mandoc", "-T", "html", "-O", "fragment", page)
        # Its own head and foot say what the site's title does.
        body = re.sub(r'<(table|div) class="(head|foot)".*?</\1>', "", body, flags=re.S)
        # The headings of a page are below the page's own, and unique in it.
        body = re.sub(r"<(/?)h1", r"<\1h2", body)
        name = f"{page.stem}({page.suffix[1:]})"
        place = f"man/{page.name}.md"
        (pages / place).parent.mkdir(exist_ok=True)
        blocks = re.sub(r"\n\s*\n", "\n", body)
        (pages / place).write_text(f"# {name}\n\n<div class=\"man\">\n{blocks}\n</div>\n")
        places.append(place)
    return places


def program():
    found = ROOT / "target" / "debug" / "larder"
    if not found.exists():
        run("cargo", "build", "--package", "larder", cwd=ROOT)
    return found


def admin_api(pages):
    """A page of the admin listener's requests, from the description that a daemon gives of itself."""
    socket = WORK / "admin.sock"
    daemon = subprocess.Popen(
        [program(), "serve", "--listen", "127.0.0.1:0", "--origin", "http://127.0.0.1:9", "--admin-socket", socket],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for _ in range(100):
            if socket.exists() or daemon.poll() is not None:
                break
            time.sleep(0.1)
        if daemon.poll() is not None:
            sys.exit(f"larder serve: {daemon.stderr.read()}")
        document = json.loads(run("curl", "-sf", "--unix-socket", socket, "http://localhost/api/v1/openapi.json"))
    finally:
        daemon.terminate()
        daemon.wait()
    parts = [
        "# Admin API",
        "",
        document["info"]["description"],
        "",
        "A running daemon gives this description as OpenAPI 3.1 at `/api/v1/openapi.json`. "
        "[The admin listener](../guide/admin.md) explains tokens, roles and sockets.",
    ]
    shapes = document["components"]["schemas"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            parts += ["", f"## {method.upper()} {path}", "", operation["summary"]]
            roles = [role for rule in operation["security"] for role in rule.get("token", [])]
            parts += ["", f"Role: `{roles[0]}`." if roles else "No token is needed."]
            if parameters := operation.get("parameters"):
                parts += ["", "| parameter | type | meaning |", "|---|---|---|"]
                parts += [f"| `{p['name']}` | {kind(p['schema'])} | {cell(p['description'])} |" for p in parameters]
            if body := operation.get("requestBody"):
                parts += ["", f"Request body: {content(body['content'])}{'' if body['required'] else ', or none'}."]
            parts += ["", "| status | meaning |", "|---|---|"]
            for status, response in operation["responses"].items():
                shape = f" Body: {content(response['content'])}." if "content" in response else ""
                parts.append(f"| {status} | {cell(response['description'])}{shape} |")
    parts += ["", "# Shapes"]
    for name, shape in shapes.items():
        parts += ["", f"## {name}"]
        if about := shape.get("description"):
            parts += ["", about]
        if properties := shape.get("properties"):
            needed = shape.get("required", [])
            parts += ["", "| member | type | meaning |", "|---|---|---|"]
            for member, of in properties.items():
                optional = "" if member in needed else " Optional."
                parts.append(f"| `{member}` | {kind(of)} | {cell(of.get('description', ''))}{optional} |")
        else:
            parts += ["", f"{kind(shape)}."]
    (pages / "docs" / "reference" / "admin-api.md").write_text("\n".join(parts) + "\n")


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def content(media):
    (name, of), *_ = media.items()
    return kind(of["schema"]) if "json" in name else f"`{name}`"


def kind(schema):
    """A JSON Schema in a few words."""
    if target := schema.get("$ref"):
        name = target.rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if values := schema.get("enum"):
        return ", ".join(f"`{json.dumps(value)}`" for value in values)
    kinds = schema.get("type", "any")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    words = [f"array of {kind(schema['items'])}" if one == "array" and "items" in schema else one for one in kinds]
    return " or ".join(words)


def decisions(pages):
    """An overview of the decisions; returns its place and theirs."""
    folder = pages / "docs" / "decisions"
    found = sorted(folder.glob("[0-9]*.md"))
    rows = "\n".join(f"| {page.name[:4].lstrip('0')} | [{title(page)}]({page.name}) |" for page in found)
    (folder / "README.md").write_text(f"# Decisions\n\n| | decision |\n|---|---|\n{rows}\n")
    return ["docs/decisions/README.md"] + [f"docs/decisions/{page.name}" for page in found]


def configuration(lists):
    """The settings of the site, with lists of pages in place of the comments that announce them."""
    text = (ROOT / "docs" / "site" / "zensical.toml").read_text()
    for comment, places in lists.items():
        assert f"# {comment}" in text, comment
        text = text.replace(f"# {comment}", "\n    ".join(f'"{place}",' for place in places))
    return text


class Page(html.parser.HTMLParser):
    """The links, the anchors and the foreign hosts of one page."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.foreign = {""}, [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        for name in ("href", "src"):
            target = values.get(name)
            if not target:
                continue
            loads = tag in {"script", "img", "iframe"} or tag == "link" and values.get("rel") != "canonical"
            if re.match(r"(https?:)?//", target):
                self.foreign += [target] if loads else []
            elif not re.match(r"(data|mailto|javascript):", target):
                self.links.append(target)


def check():
    """Says what is wrong with the links of the site."""
    pages = {page: Page(page.read_text()) for page in sorted(SITE.rglob("*.html"))}
    problems = []
    for page, content in pages.items():
        # The page of a server's 404 has links from the root.
        if page.name == "404.html":
            continue
        where = page.relative_to(SITE)
        problems += [f"{where}: loads {target}" for target in content.foreign]
        for target in content.links:
            path, _, anchor = urllib.parse.unquote(target).partition("#")
            file = (page.parent / path.partition("?")[0]).resolve() if path else page
            if not file.is_file():
                problems.append(f"{where}: {target} does not exist")
            elif file in pages and anchor not in pages[file].anchors and not anchor.startswith("__"):
                problems.append(f"{where}: {target}: there is no such heading")
    if problems:
        sys.exit("\n".join(sorted(set(problems))))
    print(f"{len(pages)} pages, {sum(len(content.links) for content in pages.values())} links: all hold")


def build():
    shutil.rmtree(WORK, ignore_errors=True)
    pages = WORK / "pages"
    pages.mkdir(parents=True)
    stage(pages)
    admin_api(pages)
    lab = sorted(str(page.relative_to(pages)) for page in (pages / "docs" / "lab").glob("*.md"))
    lists = {
        "The man pages.": man_pages(pages),
        "The pages of docs/lab.": lab,
        "The decisions.": decisions(pages),
    }
    (WORK / "zensical.toml").write_text(configuration(lists))
    tools = ROOT / "target" / "tools" / "site"
    if not (tools / "bin" / "zensical").exists():
        run(sys.executable, "-m", "venv", tools)
        run(tools / "bin" / "pip", "install", "--quiet", ZENSICAL)
        run("npm", "pack", "--silent", "--pack-destination", tools, FRAME_WORKER)
        run("tar", "xzf", next(tools.glob("iframe-worker-*.tgz")), "-C", tools)
    output = run(tools / "bin" / "zensical", "build", "--config-file", "zensical.toml", cwd=WORK)
    if "Warning" in output:
        sys.exit(output)
    made = WORK / "site"
    shutil.copy(tools / "package" / "shim" / "index.js", made / "assets" / "javascripts" / "iframe-worker.js")
    for page in made.rglob("*.html"):
        up = "../" * (len(page.relative_to(made).parts) - 1)
        text = page.read_text()
        text = text.replace("https://unpkg.com/iframe-worker/shim", f"{up}assets/javascripts/iframe-worker.js")
        # The logo leads to a folder, which is a page on a server only.
        text = re.sub(r'href="(\./)?(\.\.)?(/\.\.)*" title="Larder"', f'href="{up}index.html" title="Larder"', text)
        page.write_text(text)
    shutil.rmtree(SITE, ignore_errors=True)
    made.rename(SITE)
    shutil.rmtree(WORK)


if "--check" not in sys.argv[1:]:
    build()
check()
