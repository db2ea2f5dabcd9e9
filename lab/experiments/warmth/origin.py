"""An application that takes its time: so many requests at once, each for so long; further ones wait for a place.

    origin.py PORT PLACES MILLISECONDS PAGES

`/page/N` may be kept for an hour, `/sitemap.xml` names all pages, `/status` tells the most requests that it had at once since
it was asked last, and how many it answered.
"""

import asyncio
import json
import sys

PORT, PLACES, MILLISECONDS, PAGES = map(int, sys.argv[1:])
BODY = b"<!doctype html><title>A page of the lab</title>".ljust(10_000, b"x")
places = asyncio.Semaphore(PLACES)
under_way = most = answered = 0


def response(body, kind, lifetime):
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nCache-Control: {lifetime}\r\n\r\n"
    return head.encode() + body


async def page():
    """A page, once there has been a place for it."""
    global under_way, most, answered
    under_way += 1
    most = max(most, under_way)
    async with places:
        await asyncio.sleep(MILLISECONDS / 1000)
    under_way -= 1
    answered += 1
    return response(BODY, "text/html", "max-age=3600")


def status():
    global most
    told = json.dumps({"most": most, "answered": answered}).encode()
    most = under_way
    return response(told, "application/json", "no-store")


def sitemap():
    urls = "".join(f"<url><loc>http://lab.localhost/page/{number}</loc></url>" for number in range(PAGES))
    text = f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'
    return response(text.encode(), "text/xml", "no-store")


async def serve(reader, writer):
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            path = head.split(b" ", 2)[1]
            if path == b"/status":
                writer.write(status())
            elif path == b"/sitemap.xml":
                writer.write(sitemap())
            else:
                writer.write(await page())
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", PORT, backlog=1024)
    await server.serve_forever()


asyncio.run(main())
