"""People and a crawler before one server, each at a rate of its own, whatever the server answers; a line of JSON with what
they saw.

    visitors.py PORT SECONDS PEOPLE_PER_SECOND CRAWLER_PER_SECOND SEED

People ask for pages, most of which are stored by then, and one in ten searches for something that nobody has searched for.
The crawler asks for the front page with a parameter that it makes up. Each request is due at a moment of its own and has a
connection of its own; its time begins when it is due. Nobody waits longer than ten seconds.
"""

import asyncio
import collections
import json
import random
import sys
import time

PATIENCE = 10
# The most requests of the crawler that are under way at once: those that are due meanwhile are left out, and counted.
CRAWLER_CONNECTIONS = 300
PAGES = ["/", *(f"/post-{number}/" for number in range(1, 41))]
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
CRAWLER = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)"


async def exchange(port, path, agent):
    """The status of a response, once it is whole."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        head = f"GET {path} HTTP/1.1\r\nHost: wordpress.localhost\r\nUser-Agent: {agent}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode())
        answer = await reader.read(1 << 20)
        while more := await reader.read(1 << 20):
            answer += more
        return answer[9:12].decode() if answer.startswith(b"HTTP/1.") else "nothing"
    finally:
        writer.close()


async def ask(port, path, agent):
    """The status of a response; a word where there is none."""
    try:
        return await asyncio.wait_for(exchange(port, path, agent), PATIENCE)
    except asyncio.TimeoutError:
        return "too late"
    except OSError:
        return "refused"


class Client:
    """Requests at a rate, and what became of them."""

    def __init__(self, port, agent, path, most=None):
        self.port, self.agent, self.path, self.most = port, agent, path, most
        self.times, self.statuses, self.under_way = [], collections.Counter(), 0

    async def visit(self, due):
        self.under_way += 1
        status = await ask(self.port, self.path(), self.agent)
        self.under_way -= 1
        self.statuses[status] += 1
        self.times.append(time.monotonic() - due)

    async def go(self, rate, until):
        """Asks until that moment, then waits for the last answers."""
        due, visits = time.monotonic(), set()
        while rate and due < until:
            await asyncio.sleep(max(0, due - time.monotonic()))
            if self.most and self.under_way >= self.most:
                self.statuses["not sent"] += 1
            else:
                visit = asyncio.create_task(self.visit(due))
                visits.add(visit)
                visit.add_done_callback(visits.discard)
            due += 1 / rate
        if visits:
            await asyncio.wait(visits)


async def main(port, seconds, people_rate, crawler_rate, seed):
    chance = random.Random(seed)

    def page():
        return f"/?s=word{chance.randrange(10**9)}" if chance.random() < 0.1 else chance.choice(PAGES)

    people = Client(port, BROWSER, page)
    crawler = Client(port, CRAWLER, lambda: f"/?p={10**6 + chance.randrange(10**9)}", CRAWLER_CONNECTIONS)
    # What people have asked for before.
    for path in PAGES:
        await ask(port, path, BROWSER)
    until = time.monotonic() + seconds
    await asyncio.gather(people.go(people_rate, until), crawler.go(crawler_rate, until))
    return {
        "people": {"times": people.times, "statuses": people.statuses},
        "crawler": {"times": crawler.times, "statuses": crawler.statuses},
    }


print(json.dumps(asyncio.run(main(*map(int, sys.argv[1:])))))
