"""The visitors of the lab's sites: who they are, what they ask for and when, and what they must never see.

Everything is drawn by a seed before the first request leaves, so that two rounds are the same visits at the same moments.
Each visitor has an address of its own on the loopback network, one connection, a browser and its cookies.
"""

import asyncio
import gzip
import random
import re
import time
from dataclasses import dataclass, field

PATIENCE_S = 20
PAGE_BYTES = 64 << 10
PEOPLE = 60
BROWSERS = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:143.0) Gecko/20100101 Firefox/143.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Safari/605.1.15",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 "
    "Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36",
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 "
    "Edg/140.0.0.0",
    "Mozilla/5.0 (iPad; CPU OS 17_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.6 "
    "Mobile/15E148 Safari/604.1",
]
LANGUAGES = ["en-US,en;q=0.9", "en-GB,en;q=0.8", "de-DE,de;q=0.9,en;q=0.6", "de", "fr-FR,fr;q=0.9,en;q=0.5"]
CRAWLERS = [
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)",
    "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)",
]
# What a page of the lab says of itself: which cookie, parameter or field of the request made it what it is.
SHOWN = re.compile(rb"shown (cookie|parameter|field) ([\w-]+) (is not|is|begins with|does not begin with) \[([^\]]*)\]")


@dataclass
class Visitor:
    """A person, or a crawler; `number` counts from 0."""

    number: int
    agent: str
    language: str
    cookies: dict = field(default_factory=dict)

    @property
    def address(self):
        return f"127.{1 + self.number % 200}.{1 + self.number // 200}.1"


@dataclass
class Ask:
    """A request that a visitor makes: path with query, cookies beside the visitor's own, further fields."""

    path: str
    cookies: dict = field(default_factory=dict)
    fields: dict = field(default_factory=dict)


@dataclass
class Part:
    """A share of a site's visits; `choose` draws what one of them asks for."""

    weight: float
    choose: object
    by_crawlers: bool = False


@dataclass
class Visit:
    """A request that is due `at` seconds after the beginning."""

    at: float
    visitor: Visitor
    ask: Ask

    def fields(self, host):
        """Its request fields, by name."""
        cookies = {**self.visitor.cookies, **self.ask.cookies}
        fields = {
            "Host": host, "User-Agent": self.visitor.agent, "Accept": "text/html,application/json;q=0.9,*/*;q=0.8",
            "Accept-Language": self.visitor.language, "Accept-Encoding": "gzip",
        }
        if cookies:
            fields["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
        return {**fields, **self.ask.fields}


@dataclass
class Answer:
    """What came of a visit: its status (0 without an answer), fields with lower-case names, and body."""

    visit: Visit
    status: int
    fields: dict = field(default_factory=dict)
    body: bytes = b""

    @property
    def is_hit(self):
        """Whether a stored response answered it without a wait for the origin."""
        return re.match(r"larder; hit\b", self.fields.get("cache-status", "")) is not None


def zipf(pattern, number):
    """A `choose` over `number` paths, the first of which is asked for most, the second half as often, and so on."""
    paths = [pattern.format(at) for at in range(1, number + 1)]
    weights = [1 / at for at in range(1, number + 1)]
    return lambda chance, _visitor: Ask(chance.choices(paths, weights)[0])


def people(chance, cookies):
    """The people of a site; `cookies` draws those that a visitor keeps."""
    found = []
    for number in range(PEOPLE):
        visitor = Visitor(number, chance.choice(BROWSERS), chance.choice(LANGUAGES))
        visitor.cookies = cookies(chance, visitor)
        found.append(visitor)
    return found


def visits(parts, seconds, rate, seed, cookies):
    """All visits of a round, in the order of their moments."""
    chance = random.Random(seed)
    persons = people(chance, cookies)
    crawlers = [Visitor(PEOPLE + at, agent, "") for at, agent in enumerate(CRAWLERS)]
    frequency = [1 / (at + 5) for at in range(len(persons))]
    weights = [part.weight for part in parts]
    drawn = []
    for at in range(int(seconds * rate)):
        part = chance.choices(parts, weights)[0]
        visitor = chance.choice(crawlers) if part.by_crawlers else chance.choices(persons, frequency)[0]
        drawn.append(Visit(at / rate, visitor, part.choose(chance, visitor)))
    return drawn


class Connection:
    """A visitor's connection, on which one request follows another."""

    def __init__(self, port, address):
        self.port, self.address, self.turn = port, address, asyncio.Lock()
        self.reader = self.writer = None

    async def ask(self, target, fields):
        """The status, fields and body of an answer."""
        async with self.turn:
            for attempt in (0, 1):
                kept = self.writer is not None
                try:
                    return await asyncio.wait_for(self._exchange(target, fields), PATIENCE_S)
                except (OSError, asyncio.IncompleteReadError):
                    self.close()
                    # A kept connection may have been closed from the other end meanwhile.
                    if not kept or attempt:
                        raise

    async def _exchange(self, target, fields):
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(
                "127.0.0.1", self.port, local_addr=(self.address, 0), limit=1 << 20,
            )
        lines = [f"GET {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
        self.writer.write("\r\n".join(lines).encode())
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(head[0].split()[1])
        got = {}
        for line in filter(None, head[1:]):
            name, _, value = line.partition(":")
            name = name.lower()
            got[name] = f"{got[name]}, {value.strip()}" if name in got else value.strip()
        body = await self._body(status, got)
        if got.get("connection", "").lower() == "close":
            self.close()
        return status, got, body

    async def _body(self, status, fields):
        if status in (204, 304):
            return b""
        if fields.get("transfer-encoding", "").lower() == "chunked":
            body = b""
            while size := int((await self.reader.readline()).split(b";")[0], 16):
                body += await self.reader.readexactly(size)
                await self.reader.readexactly(2)
            await self.reader.readuntil(b"\r\n")
            return body
        if "content-length" in fields:
            return await self.reader.readexactly(int(fields["content-length"]))
        body = await self.reader.read()
        self.close()
        return body

    def close(self):
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


async def _walk(port, host, planned, events):
    connections, answers = {}, []

    async def one(visit):
        number = visit.visitor.number
        connection = connections.setdefault(number, Connection(port, visit.visitor.address))
        try:
            status, fields, body = await connection.ask(visit.ask.path, visit.fields(host))
            # Larger bodies are files, which say nothing of their visitor.
            answers.append(Answer(visit, status, fields, body if len(body) <= PAGE_BYTES else b""))
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError):
            connection.close()
            answers.append(Answer(visit, 0))

    began = time.monotonic()
    due = sorted([(visit.at, at, visit) for at, visit in enumerate(planned)] + [
        (at, len(planned) + number, event) for number, (at, event) in enumerate(events)
    ])
    under_way = []
    for at, _, what in due:
        await asyncio.sleep(max(0, began + at - time.monotonic()))
        if isinstance(what, Visit):
            under_way.append(asyncio.create_task(one(what)))
        else:
            under_way.append(asyncio.create_task(asyncio.to_thread(what, port)))
    await asyncio.gather(*under_way)
    for connection in connections.values():
        connection.close()
    return answers


def walk(port, host, planned, events=()):
    """Has the visits made, each at its moment; their answers. `events` are moments, and what is done with the port then."""
    return asyncio.run(_walk(port, host, planned, events))


def decoded(answer):
    """The body of an answer without its coding."""
    if answer.body and answer.fields.get("content-encoding") == "gzip":
        return gzip.decompress(answer.body)
    return answer.body


def _given(answer, kind, name):
    """The value that the visitor sent, empty if none."""
    visit = answer.visit
    if kind == "cookie":
        return {**visit.visitor.cookies, **visit.ask.cookies}.get(name, "")
    if kind == "field":
        return visit.fields("").get(name, "")
    for pair in visit.ask.path.partition("?")[2].split("&"):
        key, _, value = pair.partition("=")
        if key == name:
            return value
    return ""


def wrong_pages(answers):
    """What visitors saw that was made for others: a line each."""
    wrong = []
    for answer in answers:
        for kind, name, relation, value in SHOWN.findall(decoded(answer)):
            kind, name, value = kind.decode(), name.decode(), value.decode()
            given = _given(answer, kind, name)
            holds = given.startswith(value) if b"begin" in relation else given == value
            if holds == (b"not" in relation):
                wrong.append(
                    f"{answer.visit.ask.path}: made for {kind} {name} {relation.decode()} [{value}],"
                    f" seen with [{given}]"
                )
    return wrong


def ratio(answers):
    """The share of visits that stored responses answered, in percent."""
    return 100 * sum(answer.is_hit for answer in answers) / len(answers)
