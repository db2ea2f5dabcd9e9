"""The origin of the site `api`: JSON, with the fields that its authors thought of, or with `well` those that it should have.

    api_origin.py PORT faulty|well
"""

import email.utils
import json
import hashlib
import sys
import time
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from sites.site import text

WELL = sys.argv[2] == "well"
# Everything begins anew with each round.
began = time.time()
reported = set()
PUBLISHED_S, TOGETHER_S = 3, 14
BEHIND_S = 0 if WELL else 1800


class Request:
    """What a resource may look at."""

    def __init__(self, handler):
        url = urlsplit(handler.path)
        self.path, self.query = url.path, dict(parse_qsl(url.query, keep_blank_values=True))
        self.fields = handler.headers
        self.cookies = {name: one.value for name, one in SimpleCookie(handler.headers.get("Cookie", "")).items()}

    def shown(self, kind, name, value):
        """What the answer says of where it comes from."""
        return f"shown {kind} {name} is [{value}]"


def document(request, size=3000, **more):
    """JSON about a path, always of these bytes."""
    return json.dumps({"path": request.path, "text": text(request.path, size), **more}).encode()


def tag(body):
    return f'"{hashlib.sha256(body).hexdigest()[:16]}"'


def http_date(at):
    return email.utils.formatdate(at, usegmt=True)


HOUR = {"Cache-Control": "max-age=3600"}
IMPATIENT = {"Cache-Control": "max-age=1, must-revalidate"}


def products(request):
    """Some ask for prices in another currency; which app they have makes no difference."""
    currency = request.query.get("currency", "")
    return 200, HOUR, document(request, currency=request.shown("parameter", "currency", currency))


def categories(request):
    return 200, HOUR if WELL else {"Cache-Control": "private, max-age=3600"}, document(request)


def stock(request):
    return 200, HOUR if WELL else {**HOUR, "Vary": "Accept-Language"}, document(request)


def rates(request):
    return 200, HOUR if WELL else IMPATIENT, document(request)


def weather(request):
    return 200, {"Expires": http_date(time.time() - BEHIND_S + 600)}, document(request)


def reports(request):
    """Broken when it is asked for first. The failure is said to last for two hours."""
    if request.path not in reported:
        reported.add(request.path)
        fields = {"Cache-Control": "no-store" if WELL else "max-age=7200"}
        return 503, fields, document(request, 200, error="the reports are not there")
    return 200, HOUR, document(request)


def prices(request):
    """All prices are said to end at the same moment."""
    now = time.time()
    rest = TOGETHER_S - (now - began) % TOGETHER_S
    return 200, HOUR if WELL else {"Expires": http_date(now + rest)}, document(request)


def users(request):
    return 410, HOUR if WELL else {}, document(request, 200, error="no such user any more")


def moved(request):
    place = request.path.replace("/v0/", "/v1/products/")
    return 301, {"Location": place, **(HOUR if WELL else {})}, b""


def exports(request):
    return 200, HOUR, document(request, 200_000)


def tracked(request):
    fields = HOUR if WELL else {**HOUR, "Set-Cookie": "edge=b; Path=/v1/regions/"}
    return 200, fields, document(request)


def countries(request):
    return 200, HOUR, document(request)


def me(request):
    name = request.cookies.get("session", "")
    return 200, {"Cache-Control": "private"}, document(request, 400, name=request.shown("cookie", "session", name))


def cart(request):
    """Two visitors have not put anything into theirs yet."""
    name = request.cookies.get("session", "")
    content = "empty" if name in ("v1", "v2") else request.shown("cookie", "session", name)
    return 200, {"Cache-Control": "private, max-age=60"}, document(request, 400, cart=content)


def login(request):
    name = request.query.get("as", "")
    fields = {"Cache-Control": "max-age=60", "Set-Cookie": f"session={name}; HttpOnly"}
    return 200, fields, document(request, 300, name=request.shown("parameter", "as", name))


def search(request):
    return 200, HOUR, document(request, found=request.shown("parameter", "q", request.query.get("q", "")))


def clock(request):
    return 200, {"Cache-Control": "no-store"}, document(request, 200, now=time.time())


def uploads(request):
    """What is not there yet, and is a moment later."""
    if time.time() - began < PUBLISHED_S:
        return 404, {}, document(request, 200)
    return 200, HOUR, document(request)


def scores(request):
    return 200, IMPATIENT, document(request, score=int(time.time()))


RESOURCES = {
    "products": products, "categories": categories, "stock": stock, "rates": rates, "weather": weather,
    "reports": reports, "prices": prices, "users": users, "exports": exports, "regions": tracked,
    "countries": countries, "me": me, "cart": cart, "login": login, "search": search, "clock": clock,
    "uploads": uploads, "scores": scores,
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        global began
        request = Request(self)
        parts = request.path.split("/")
        if request.path == "/reset":
            began = time.time()
            reported.clear()
            answer = 204, {}, b""
        elif parts[1] == "v0":
            answer = moved(request)
        else:
            answer = RESOURCES.get(parts[2] if len(parts) > 2 else "", users)(request)
        self.send(request, *answer)

    def send(self, request, status, fields, body):
        """Writes an answer in one piece; a validator that the client has makes it a 304."""
        if status == 200:
            fields = {"ETag": tag(body), **fields}
            if request.fields.get("If-None-Match") == fields["ETag"]:
                status, body = 304, b""
        fields = {"Date": http_date(time.time() - BEHIND_S), "Content-Type": "application/json", **fields}
        if status not in (204, 304):
            fields["Content-Length"] = str(len(body))
        lines = [f"HTTP/1.1 {status} ", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
        self.wfile.write("\r\n".join(lines).encode() + body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
