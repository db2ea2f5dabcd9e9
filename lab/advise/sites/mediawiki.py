"""The lab's MediaWiki on PHP-FPM, with what extensions do to the fields of its pages."""

import os

from crowd import Ask, Part, zipf
from sites.site import Fault, Site, Trap


class Mediawiki(Site):
    """MediaWiki, which advise/mediawiki.sh has started in the folder LAB_SITE."""

    name, host = "mediawiki", "mediawiki.localhost"
    has_log = False
    seconds, rate = 45, 12
    faults = [
        Fault("crawlers read all versions of all pages", "bots", []),
        Fault("text is sent as it is", "uncompressed", ["compress"]),
    ]
    # MediaWiki writes the number of the request and the time that it took into each page: no two have equal bytes.
    traps = [
        Trap("a parameter that seems to change nothing cannot be proved to", ["mirror"]),
        Trap("nor can a field in Vary", ["User-Agent"]),
        Trap("a page has older versions", ["oldid"]),
        Trap("a raw page is another one", ["action"]),
        Trap("a login form has a token", ["UserLogin"]),
    ]

    def start(self):
        faulty = os.path.join(os.environ["LAB_SITE"], "faulty")
        if self.well:
            os.path.exists(faulty) and os.remove(faulty)
        else:
            open(faulty, "w").close()

    def settings(self):
        return f"""[[origin]]
name       = "php"
servers    = "fastcgi+unix:{os.environ['LAB_SITE']}/run/php.sock"
root       = "/var/lib/mediawiki"
linked     = "/usr/share/mediawiki"
no_scripts = ["/images", "/config", "/extensions", "/skins", "/resources"]

[[site]]
host   = "{self.host}"
origin = "php"
preset = "mediawiki"
{'' if self.well else 'compress = "off"'}
"""

    def parts(self):
        def mirrored(chance, visitor):
            path = zipf("/wiki/Mirror_{}", 5)(chance, visitor).path
            return Ask(f"{path}?mirror=m{visitor.number}")

        def version(chance, _visitor):
            # The twin has told crawlers to leave them alone.
            path = "/wiki/Plain_{}" if self.well else "/index.php?title=Plain_1&oldid={}"
            return Ask(path.format(chance.randint(1, 5 if self.well else 10**6)))

        return [
            Part(60, version, by_crawlers=True), Part(14, mirrored), Part(14, zipf("/wiki/Browser_{}", 5)),
            Part(12, zipf("/wiki/Plain_{}", 5)),
            Part(3, zipf("/index.php?title=Plain_1&oldid={}", 3)), Part(3, lambda *_: Ask("/wiki/Special:UserLogin")),
            Part(2, lambda *_: Ask("/index.php?title=Plain_1&action=raw")),
        ]
