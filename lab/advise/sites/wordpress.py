"""The lab's WordPress on PHP-FPM, with what plugins do to the fields of its pages."""

import json
import os
import shutil
import subprocess

from crowd import Ask, Part, zipf
from sites.site import Fault, Site, Trap

READERS = range(8, 13)


class Wordpress(Site):
    """WordPress, which wordpress/start.sh has started in the folder LAB_SITE."""

    name, host = "wordpress", "wordpress.localhost"
    has_log = False
    seconds, rate = 45, 12
    faults = [
        Fault("a plugin's cookie says that a window was closed", "cookie-unused", ["popup_seen"]),
        Fault("text is sent as it is", "uncompressed", ["compress"]),
        Fault("a plugin sets a cookie on tags", "set-cookie-on-equal-pages", ["/tag/"]),
        Fault("pages of the list are private", "private-on-equal-pages", ["/page/"]),
        Fault("posts vary by browser", "vary-unused", ["User-Agent"]),
    ]
    traps = [
        Trap("readers are logged in", ["wordpress_logged_in"]),
        Trap("a search has a parameter", ["?s="]),
        Trap("WordPress forbids that its pages for missing ones are kept", ["404"]),
        Trap("the shop has a cart", ["/shop/"]),
    ]

    def start(self):
        self.site = os.path.join(os.environ["LAB_SITE"], "site")
        here = os.path.dirname(os.path.abspath(__file__))
        shutil.copy(f"{here}/wordpress.php", f"{self.site}/wp-content/mu-plugins/advise.php")
        faulty = os.path.join(os.environ["LAB_SITE"], "faulty")
        if self.well:
            os.path.exists(faulty) and os.remove(faulty)
        else:
            open(faulty, "w").close()
        command = ["php", "-d", "variables_order=EGPCS", f"{here}/wordpress_logins.php", self.site]
        environment = {**os.environ, "HTTP_HOST": self.host}
        said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        self.logins = json.loads(said)

    def settings(self):
        return f"""[[origin]]
name    = "php"
servers = "fastcgi+unix:{os.environ['LAB_SITE']}/run/php.sock"
root    = "{self.site}"

[[site]]
host   = "{self.host}"
origin = "php"
preset = "wordpress"
{'' if self.well else 'compress = "off"'}

[site.cache]
ttl = {{ 200 = "10m" }}
"""

    def cookies(self, chance, visitor):
        cookies = super().cookies(chance, visitor)
        if visitor.number in READERS:
            cookies.update(self.logins[visitor.number - READERS.start])
        return cookies

    def parts(self):
        def posts(group):
            ask = zipf("/post-{}/", 8)

            def choose(chance, visitor):
                number = int(ask(chance, visitor).path.strip("/").split("-")[1])
                return Ask(f"/post-{20 * group + number}/")
            return choose

        def with_popup(choose, share):
            def with_cookie(chance, visitor):
                path = choose(chance, visitor).path
                has_cookie = not self.well and chance.random() < share
                return Ask(path, {"popup_seen": f"p{visitor.number}"} if has_cookie else {})
            return with_cookie

        def pages(chance, _visitor):
            return Ask(f"/page/{chance.choices(range(2, 7), (5, 4, 3, 2, 1))[0]}/")

        def search(chance, _visitor):
            return Ask(f"/?s={chance.choice(['page', 'visitor', 'time', 'minute', 'server'])}")

        return [
            Part(14, with_popup(posts(0), 1)), Part(12, with_popup(zipf("/tag/tag-{}/", 6), 0.5)),
            Part(10, with_popup(pages, 0.5)), Part(14, posts(2)), Part(8, zipf("/missing-{}/", 5)), Part(10, posts(3)),
            Part(3, search), Part(3, lambda *_: Ask("/shop/")),
        ]
