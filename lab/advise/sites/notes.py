"""The lab's Django application on gunicorn, over plain HTTP."""

import os
import subprocess

from crowd import Ask, Part, zipf
from sites.site import Fault, Site, Trap

CHANGED = 6


class Notes(Site):
    """Django, which names no lifetimes itself, with what its developers added."""

    name, host = "django", "django.localhost"
    faults = [
        Fault("every visitor has a cookie of a consent banner", "cookie-unused", ["consent"]),
        Fault("help pages set a cookie that says nothing", "set-cookie-on-equal-pages", ["/help/"]),
        Fault("the archive states no lifetime", "lifetime-missing", ["/archive/"]),
        Fault("tags are private, and equal", "private-on-equal-pages", ["/tags/"]),
        Fault("printed pages say where their reader came from", "query-parameter-unused", ["from"], by_log=True),
        Fault("guides vary by language, in one language", "vary-unused", ["Accept-Language", "/guides/"]),
        Fault("recent notes live for a second", "lifetime-short", ["/recent/"], ["validator-missing"]),
        Fault("old addresses are redirected, without a lifetime", "redirect-lifetime", ["301"]),
        Fault("crawlers walk through a calendar without an end", "bots", [], by_log=True),
        Fault("pages that are gone have no lifetime", "not-found-lifetime", ["404"]),
    ]
    traps = [
        Trap("a desk for each session", ["/desk/"]),
        Trap("one visitor in sixty has another currency, by a cookie", ["/prices/"]),
        Trap("a list has pages", ["page"]),
        Trap("a form has a token, which is a cookie too", ["/ask/"]),
    ]

    def start(self):
        python = os.environ["DJANGO_PYTHON"]
        here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        django = os.path.join(os.path.dirname(here), "django")
        environment = {
            **os.environ, "LAB_WORK": self.work, "LAB_FORM": "well" if self.well else "faulty",
            "PYTHONPATH": f"{django}:{os.environ['PYTHONPATH']}",
        }
        subprocess.run(
            [f"{python}/bin/python", os.path.join(django, "fill.py")], env=environment, check=True, capture_output=True,
        )
        environment["DJANGO_SETTINGS_MODULE"] = "sites.notes_settings"
        self.run([
            f"{python}/bin/gunicorn", "--bind", f"127.0.0.1:{self.port}", "--workers", "1", "--threads", "8",
            "--keep-alive", "60", "django.core.wsgi:get_wsgi_application()",
        ], env=environment)
        self.wait("/topics/1/")

    def parts(self):
        def with_consent(choose, share):
            def with_cookie(chance, visitor):
                path = choose(chance, visitor).path
                has_cookie = not self.well and chance.random() < share
                return Ask(path, {"consent": f"c{visitor.number}"} if has_cookie else {})
            return with_cookie

        def printed(chance, visitor):
            ask = zipf("/print/{}/", 6)(chance, visitor)
            return ask if self.well else Ask(f"{ask.path}?from=v{visitor.number}")

        def calendar(chance, _visitor):
            # The twin has told crawlers where the calendar ends.
            return Ask(f"/list/?page={chance.randrange(3 if self.well else 10**6)}")

        def desk(_chance, visitor):
            return Ask("/desk/", {"sessionid": f"session{visitor.number}"})

        def prices(_chance, visitor):
            return Ask("/prices/", {"currency": "CHF" if visitor.number == CHANGED else "EUR"})

        return [
            Part(12, with_consent(zipf("/topics/{}/", 8), 1)), Part(10, with_consent(zipf("/help/{}/", 6), 0.4)), Part(10, zipf("/archive/{}/", 6)),
            Part(10, with_consent(zipf("/tags/{}/", 6), 0.4)), Part(10, printed), Part(10, zipf("/guides/{}/", 6)),
            Part(10, zipf("/recent/{}/", 4)), Part(7, zipf("/old/{}/", 6)), Part(7, zipf("/gone/{}/", 6)),
            Part(80, calendar, by_crawlers=True), Part(3, desk), Part(4, prices), Part(4, zipf("/list/?page={}", 6)), Part(2, lambda *_: Ask("/ask/")),
        ]
