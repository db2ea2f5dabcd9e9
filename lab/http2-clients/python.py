"""Python's httpx over HTTP/2, by ALPN and by prior knowledge; prints the checks as the other clients do."""

import asyncio
import hashlib
import os
import re
import ssl
import sys
from urllib.parse import urlsplit

import httpx

MB = 1 << 20
SECURE, PLAIN = os.environ["LAB_URL"], os.environ["LAB_HTTP"]
rows = []


def check(what, good, got=""):
    rows.append(bool(good))
    print(f"{'ok    ' if good else 'FAILED'}  {what}" + (f"  [{got}]" if got != "" else ""), flush=True)


def whole(answer, length):
    body = answer.content
    return (
        answer.status_code == 200
        and len(body) == length
        and hashlib.sha256(body).hexdigest() == answer.headers["x-sha256"]
    )


def hit(answer, earlier):
    stamp = "x-origin-request"
    said = re.search(r";\s*hit\b", answer.headers.get("cache-status", ""))
    return said and answer.headers[stamp] == earlier.headers[stamp]


class Asks:
    """Asks the address, in the name of the site."""

    def __init__(self, client, base):
        self.client = client
        url = urlsplit(base)
        self.base = f"{url.scheme}://127.0.0.1:{url.port}"
        self.host = url.netloc
        self.name = url.hostname

    async def __call__(self, path, method="GET", headers=None, **more):
        return await self.client.request(
            method,
            self.base + path,
            headers={"Host": self.host, **(headers or {})},
            extensions={"sni_hostname": self.name},
            **more,
        )


async def requests(name, ask):
    kept = f"/kept/10000?{name}-python"
    first, second = await ask(kept), await ask(kept)
    check(f"{name}: is HTTP/2", first.http_version == "HTTP/2", first.http_version)
    check(f"{name}: a miss, then a hit", whole(first, 10000) and whole(second, 10000) and hit(second, first))
    passed = [await ask("/passed/500") for _ in range(2)]
    check(f"{name}: what is not to be kept is no hit", all(whole(a, 500) for a in passed) and not hit(*passed))
    head = await ask(kept, "HEAD")
    check(f"{name}: HEAD has the length and no body", head.headers["content-length"] == "10000" and not head.content)
    same = await ask(kept, headers={"If-None-Match": first.headers["etag"]})
    check(f"{name}: 304 for who has it", same.status_code == 304 and not same.content, same.status_code)
    part = await ask(kept, headers={"Range": "bytes=5000-5999"})
    check(f"{name}: a part of it", part.status_code == 206 and part.content == first.content[5000:6000], part.status_code)
    for status in (404, 503):
        answer = await ask(f"/status/{status}")
        check(f"{name}: {status} as the origin has it", answer.status_code == status and answer.text == f"status {status}")
    field = await ask("/field/20000")
    check(f"{name}: a field of 20 KB comes", len(field.headers.get("x-long", "")) == 20000, field.status_code)
    given = await ask("/request", headers={"X-Long": "l" * 20000})
    check(f"{name}: a field of 20 KB goes", "l" * 20000 in given.text, given.status_code)


async def bodies(name, ask):
    unknown = await ask(f"/passed-chunked/{3 * MB}")
    check(f"{name}: a body of unknown length", whole(unknown, 3 * MB), len(unknown.content))
    long = await ask(f"/passed/{50 * MB}")
    check(f"{name}: 50 MB arrive whole", whole(long, 50 * MB), len(long.content))
    sent = os.urandom(5 * MB)
    echo = await ask("/echo", "POST", content=sent)
    check(f"{name}: POST of 5 MB comes back", echo.content == sent, len(echo.content))

    async def pieces():
        for start in range(0, len(sent), 100_000):
            yield sent[start : start + 100_000]
            await asyncio.sleep(0)

    unsized = await ask("/request", "POST", content=pieces())
    check(f"{name}: an upload of unsaid length arrives", unsized.json()["length"] == len(sent))
    for path in (f"/cut/{MB}", f"/cut-chunked/{MB}"):
        try:
            outcome = f"{len((await ask(path)).content)} bytes"
        except httpx.RemoteProtocolError as error:
            outcome = error
        check(f"{name}: {path} is not taken for whole", isinstance(outcome, httpx.RemoteProtocolError), outcome)


async def parallel(name, ask):
    answers = await asyncio.gather(*(ask(f"/{('kept', 'passed')[n % 2]}/{n * 500}") for n in range(100)))
    check(f"{name}: 100 at once, each whole", all(whole(a, n * 500) for n, a in enumerate(answers)))
    ports = {a.extensions["network_stream"].get_extra_info("client_addr")[1] for a in answers}
    check(f"{name}: on one connection", len(ports) == 1, len(ports))


async def over_http2(name, base, **more):
    async with httpx.AsyncClient(
        http2=True, trust_env=False, timeout=30, limits=httpx.Limits(max_connections=1), **more
    ) as client:
        ask = Asks(client, base)
        for part in (requests, bodies, parallel):
            print(f"-- {name}: {part.__name__}", flush=True)
            try:
                await part(name, ask)
            except Exception as error:  # What went wrong in one part does not hide the others' results.
                check(f"{name}: {part.__name__} runs to its end", False, repr(error))


async def main():
    trusted = ssl.create_default_context(cafile=os.environ["LAB_ROOT"])
    await over_http2("TLS", SECURE, verify=trusted)
    await over_http2("h2c", PLAIN, http1=False)
    print(f"Python's httpx, over HTTP/2: {sum(rows)} of {len(rows)} checks hold")
    return 0 if all(rows) else 1


sys.exit(asyncio.run(main()))
