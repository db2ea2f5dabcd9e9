"""An API of JSON documents, whose authors thought of each field alone."""

import os
import sys
import urllib.request

from crowd import Ask, Part, zipf
from sites.site import Fault, Site, Trap

FOREIGN = 5


class Api(Site):
    """An API on an origin of the lab's own."""

    name, host = "api", "api.localhost"
    faults = [
        Fault("each app names its version", "query-parameter-unused", ["app"], by_log=True),
        Fault("categories are private, and equal", "private-on-equal-pages", ["/v1/categories/"]),
        Fault("stock varies by language, and is numbers", "vary-unused", ["Accept-Language", "/v1/stock/"]),
        Fault("rates live for a second", "lifetime-short", ["/v1/rates/"]),
        Fault("the clock is half an hour slow", "clock-off", ["behind"], by_log=True),
        Fault("a short failure is kept for two hours", "error-lifetime", ["503"]),
        Fault("all prices expire together", "expire-together", ["/v1/prices/"], also=["lifetime-short"], in_smoke=False),
        Fault("users that are gone are asked for all the time", "not-found-lifetime", ["410"]),
        Fault("the old version redirects", "redirect-lifetime", ["301"]),
        Fault("regions set a cookie of a balancer", "set-cookie-on-equal-pages", ["/v1/regions/"]),
        Fault("a cookie of the client's software", "cookie-unused", ["build"]),
        Fault("exports are larger than what is stored", "limit-fires", ["object_bytes"]),
    ]
    traps = [
        Trap("one visitor in sixty has prices in another currency", ["currency"]),
        Trap("everybody has an account", ["/v1/me"]),
        Trap("two carts are equal, because they are empty", ["/v1/cart"]),
        Trap("a login sets a session", ["/v1/login"]),
        Trap("a search has a parameter", ["/v1/search"]),
        Trap("a clock must not be stored", ["/v1/clock"]),
        Trap("what was not found is there a moment later", ["/v1/uploads"]),
        Trap("scores change every second", ["/v1/scores"]),
    ]

    def start(self):
        here = os.path.dirname(os.path.abspath(__file__))
        form = "well" if self.well else "faulty"
        self.run([sys.executable, os.path.join(here, "api_origin.py"), str(self.port), form])
        self.wait("/v1/clock")

    def reset(self):
        urllib.request.urlopen(f"http://127.0.0.1:{self.port}/reset", timeout=10).read()

    def settings(self):
        limits = "" if self.well else '[limits]\nobject_bytes = "128KiB"\n\n'
        return limits + super().settings()

    def parts(self):
        def products(chance, visitor):
            ask = zipf("/v1/products/{}", 6)(chance, visitor)
            query = [] if self.well else [f"app=ios-{visitor.number % 12}.{visitor.number}"]
            if visitor.number == FOREIGN:
                query.append("currency=CHF")
            return Ask("?".join([ask.path, "&".join(query)]) if query else ask.path)

        def with_build(choose, share):
            def with_cookie(chance, visitor):
                path = choose(chance, visitor).path
                has_cookie = not self.well and chance.random() < share
                return Ask(path, {"build": f"b{visitor.number}"} if has_cookie else {})
            return with_cookie

        def prices(chance, _visitor):
            return Ask(f"/v1/prices/{chance.randrange(100)}")

        def mine(path):
            return lambda _, visitor: Ask(path, {"session": f"v{visitor.number}"})

        def search(chance, _visitor):
            return Ask(f"/v1/search?q={chance.choice(['rye', 'salt', 'plums', 'honey', 'oats', 'flour'])}")

        # Reports are few: what their origin would have sent while a stored failure was served is in no evidence, so a
        # prediction has failures to the end.
        return [
            Part(12, products), Part(9, with_build(zipf("/v1/categories/{}", 5), 0.4)), Part(9, zipf("/v1/stock/{}", 6)),
            Part(9, zipf("/v1/rates/{}", 4)), Part(9, zipf("/v1/weather/{}", 5)), Part(2, zipf("/v1/reports/{}", 3)),
            Part(9, prices), Part(6, zipf("/v1/users/{}", 6)), Part(6, zipf("/v0/{}", 6)),
            Part(8, with_build(zipf("/v1/regions/{}", 5), 0.4)), Part(8, with_build(zipf("/v1/countries/{}", 5), 1)), Part(3, zipf("/v1/exports/{}", 3)),
            Part(2, mine("/v1/me")), Part(2, mine("/v1/cart")), Part(3, search), Part(1, lambda *_: Ask("/v1/clock")),
            Part(3, zipf("/v1/uploads/{}", 4)), Part(3, zipf("/v1/scores/{}", 2)),
            Part(1, lambda _, visitor: Ask(f"/v1/login?as=v{visitor.number}")),
        ]
