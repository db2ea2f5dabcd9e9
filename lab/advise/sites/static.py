"""A site of files, served by nginx with the fields that nobody has looked at for years."""

import os

import peers
from crowd import Ask, Part, zipf
from sites.site import Fault, Site, Trap, text

VIP = 7
FILES = {"pages": ("html", 8, 6000), "css": ("css", 5, 9000), "docs": ("html", 6, 7000), "feed": ("xml", 14, 80_000),
         "news": ("html", 5, 5000), "media": ("js", 6, 14000), "forum": ("html", 6, 5000), "blog": ("html", 5, 6000),
         "manual": ("html", 4, 6000), "about": ("html", 4, 3000)}

# Each place as it is, and as it should be.
PLACES = {
    "pages": ('expires 1h; add_header Vary User-Agent;', "expires 1h;"),
    "css": ('add_header Cache-Control "max-age=1, must-revalidate";', "expires 1h;"),
    "docs": ('add_header Last-Modified "";', "expires 1h;"),
    "feed": ('etag off; add_header Last-Modified ""; add_header Cache-Control "max-age=13, must-revalidate";', "expires 1h;"),
    "news": ('expires 1h; add_header Set-Cookie "visited=1; Path=/news/";', "expires 1h;"),
    "media": ("expires 1h;", "expires 1h;"),
    "forum": ("expires 1h;", "expires 1h;"),
    "blog": ("expires 1h;", "expires 1h;"),
}

HTTP = """
  types {{ text/html html; text/css css; text/xml xml; application/javascript js; }}
  default_type text/html;
  map $cookie_segment $offer {{ vip "shown cookie segment is [vip]"; default "shown cookie segment is not [vip]"; }}
  map $arg_view $whole {{ full "shown parameter view is [full]"; default "shown parameter view is not [full]"; }}
  map $http_accept_language $tongue {{
    ~^de "shown field Accept-Language begins with [de]"; default "shown field Accept-Language does not begin with [de]";
  }}
  map $http_accept_language $home {{ ~^de /about/de.html; default /about/en.html; }}
  map $cookie_name $letters {{ default "letters for you, shown cookie name is [$cookie_name]"; ~^v[12]$ "no letters"; }}
  server {{
    listen 127.0.0.1:{port}; root {work}/files;
    {places}
    location /gone/ {{ {gone} return 404; }}
    location /go/ {{ {go} absolute_redirect off; return 301 /pages/1.html; }}
    location /offers/ {{ expires 1h; return 200 "$uri {filler} $offer"; }}
    location /manual/ {{ expires 1h; return 200 "$uri {filler} $whole"; }}
    location /about/ {{ expires 1h; add_header Vary Accept-Language; }}
    location = /about/contact {{ expires 1h; add_header Vary Accept-Language; return 200 "{filler} $tongue"; }}
    location = /hello {{ add_header Set-Cookie "name=$arg_name; Path=/hello"; return 200 "Hello, $arg_name"; }}
    location = /inbox {{ add_header Cache-Control private; return 200 "{filler} $letters"; }}
    location = /find {{ expires 1h; return 200 "{filler} shown parameter topic is [$arg_topic]"; }}
    location = /ticker {{ add_header Cache-Control "max-age=1, must-revalidate"; return 200 "{filler} $time_iso8601"; }}
    location = /start {{ absolute_redirect off; return 302 $home; }}
  }}
"""


class Static(Site):
    """Static files behind nginx."""

    name, host = "static", "static.localhost"
    faults = [
        Fault("pages vary by browser", "vary-unused", ["User-Agent", "/pages/"]),
        Fault("styles live for a second", "lifetime-short", ["*.css"]),
        Fault("feeds have no validator", "validator-missing", ["/feed/"], in_smoke=False),
        Fault("documents state no lifetime", "lifetime-missing", ["/docs/"]),
        Fault("old addresses are asked for again and again", "not-found-lifetime", ["404"]),
        Fault("short links are fetched for each visitor", "redirect-lifetime", ["301"]),
        Fault("news set a cookie that says nothing", "set-cookie-on-equal-pages", ["/news/"]),
        Fault("the forum's layout cookie changes nothing", "cookie-unused", ["layout"]),
        Fault("shared links have a parameter of their own", "query-parameter-unused", ["share"], by_log=True),
        Fault("text is sent as it is", "uncompressed", ["compress"], by_log=True),
    ]
    traps = [
        Trap("scripts pass by the operator's own rule for their path", ["*.js"]),
        Trap("one visitor in sixty sees another offer, by a cookie", ["/offers/"]),
        Trap("one value of a parameter changes the manual", ["/manual/"]),
        Trap("Vary matters on one page of its folder", ["/about/"]),
        Trap("a session is set, and the page shows the name", ["/hello"]),
        Trap("two visitors have equal letters", ["/inbox"]),
        Trap("a parameter says what is looked for", ["/find"]),
        Trap("a page that lives for a second changes every second", ["/ticker"]),
        Trap("a redirect depends on the language", ["/start"]),
    ]

    def start(self):
        for folder, (suffix, number, size) in FILES.items():
            os.makedirs(f"{self.work}/files/{folder}", exist_ok=True)
            for at in range(1, number + 1):
                path = f"{self.work}/files/{folder}/{at}.{suffix}"
                with open(path, "w") as file:
                    file.write(text(f"{folder} {at}", size))
                # An age from which a tenth is a long time, wherever a lifetime is guessed.
                os.utime(path, (1_700_000_000, 1_700_000_000))
        places = "\n    ".join(
            f"location /{folder}/ {{ {rules[self.well]} }}" for folder, rules in PLACES.items()
        )
        minute = 'add_header Cache-Control "max-age=600" always;' if self.well else ""
        place = peers.Place(self.work, self.port, 0)
        self.run(peers.nginx_command(
            place, "origin", HTTP, places=places, gone=minute, go=minute, filler=text("filler", 900),
        ))
        self.wait("/pages/1.html")

    def settings(self):
        faults = 'compress = "off"\n\n[site.bypass]\npath = "/media/*"\n'
        return super().settings() + ("" if self.well else faults)

    def parts(self):
        def with_layout(choose, share):
            def with_cookie(chance, visitor):
                path = choose(chance, visitor).path
                # The twin keeps it in the browser.
                has_cookie = not self.well and chance.random() < share
                return Ask(path, {"layout": f"width{visitor.number}"} if has_cookie else {})
            return with_cookie

        def blog(chance, visitor):
            ask = zipf("/blog/{}.html", 5)(chance, visitor)
            return ask if self.well else Ask(f"{ask.path}?share=v{visitor.number}")

        def offers(chance, visitor):
            ask = zipf("/offers/{}.html", 3)(chance, visitor)
            return Ask(ask.path, {"segment": "vip" if visitor.number == VIP else "usual"})

        def manual(chance, visitor):
            view = "full" if visitor.number == VIP else chance.choice(["1", "2", "3"])
            return Ask(f"{zipf('/manual/{}.html', 3)(chance, visitor).path}?view={view}")

        def about(chance, visitor):
            return zipf("/about/{}.html", 4)(chance, visitor) if chance.random() < 0.7 else Ask("/about/contact")

        def find(chance, _visitor):
            return Ask(f"/find?topic={chance.choice(['rye', 'salt', 'plums', 'honey', 'oats'])}")

        return [
            Part(12, zipf("/pages/{}.html", 8)), Part(10, zipf("/css/{}.css", 5)), Part(8, zipf("/docs/{}.html", 6)),
            Part(8, lambda chance, _: Ask(f"/feed/{chance.randint(1, 14)}.xml")), Part(6, zipf("/gone/{}.html", 8)), Part(6, zipf("/go/{}", 6)),
            Part(8, with_layout(zipf("/news/{}.html", 5), 0.4)), Part(8, zipf("/media/{}.js", 6)), Part(8, with_layout(zipf("/forum/{}.html", 6), 1)), Part(8, blog),
            Part(5, offers), Part(5, manual), Part(6, about), Part(2, find), Part(3, lambda *_: Ask("/ticker")),
            Part(2, lambda _, visitor: Ask(f"/hello?name=v{visitor.number}")),
            Part(2, lambda _, visitor: Ask("/inbox", {"name": f"v{visitor.number}"})),
            Part(3, lambda *_: Ask("/start")),
        ]
