#!/usr/bin/env python3
"""What visitors of a WordPress behind Larder get: the same pages fast, and nobody else's.

LARDER_URL is Larder's address. The site is the one of fill.php; its origin stamps each answer with the time of
the request it belongs to (X-Origin-Request), so that an answer that was given before is known without
trusting any cache's own word.
"""
import concurrent.futures
import http.client
import os
import sys
import urllib.parse

BASE = urllib.parse.urlsplit(os.environ["LARDER_URL"])
STAMP = "X-Origin-Request"
ADMIN_BAR = b'id="wpadminbar"'


class Answer:
    def __init__(self, response, body):
        self.status = response.status
        self.body = body
        self.stamp = response.getheader(STAMP)
        self.cookies = response.headers.get_all("Set-Cookie") or []
        self.get = response.getheader

    def says_hit(self):
        members = (self.get("Cache-Status") or "").split(";")
        return "hit" in [member.strip() for member in members]


class Visitor:
    """A browser as far as caches are concerned: it keeps cookies and sends them back."""

    def __init__(self, **cookies):
        self.jar = dict(cookies)

    def ask(self, method, path, form=None, fields=()):
        connection = http.client.HTTPConnection(BASE.hostname, BASE.port, timeout=30)
        headers = dict(fields)
        if self.jar:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.jar.items())
        body = None
        if form is not None:
            body = urllib.parse.urlencode(form)
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        answer = Answer(response, response.read())
        connection.close()
        for cookie in answer.cookies:
            name, value = cookie.split(";")[0].split("=", 1)
            self.jar[name] = value
        return answer

    def open(self, path, **more):
        return self.ask("GET", path, **more)

    def log_in(self):
        # WordPress refuses a login whose browser did not bring its test cookie back.
        self.open("/wp-login.php")
        form = {"log": "reader", "pwd": "reader-password", "wp-submit": "Log In", "testcookie": "1"}
        answer = self.ask("POST", "/wp-login.php", form)
        return answer.status == 302 and any(name.startswith("wordpress_logged_in_") for name in self.jar)


rows = []


def check(what, good, got=""):
    rows.append((what, bool(good), str(got)))


def is_hit(answer, earlier):
    """Whether `answer` is the stored `earlier` one, by its stamp and by its own word."""
    return answer.stamp == earlier.stamp and answer.says_hit()


def seen(*answers):
    return " ".join(f"{a.status}/{'hit' if a.says_hit() else 'origin'}" for a in answers)


def second_is_hit(what, path, visitor=None, **more):
    visitor = visitor or Visitor()
    first, second = visitor.open(path, **more), visitor.open(path, **more)
    check(what, first.status == 200 and is_hit(second, first), seen(first, second))
    return first


def never_hit(what, visitor, path, times=3, status=200):
    answers = [visitor.open(path) for _ in range(times)]
    fresh = len({a.stamp for a in answers}) == times and not any(a.says_hit() for a in answers)
    check(what, fresh and all(a.status == status for a in answers), seen(*answers))
    return answers


def anonymous_pages():
    front = second_is_hit("front page: second request is a hit", "/")
    for number in (200, 150, 100):
        second_is_hit(f"post {number}: second request is a hit", f"/post-{number}/")
    feed = second_is_hit("feed: second request is a hit", "/feed/")
    second_is_hit("comment feed of a post: second request is a hit", "/post-200/feed/")
    second_is_hit("tag page: second request is a hit", "/tag/tag-3/")
    second_is_hit("REST list of posts: second request is a hit", "/wp-json/wp/v2/posts")
    second_is_hit("static file: second request is a hit", "/wp-includes/js/jquery/jquery.min.js")
    answer = Visitor().open("/feed/", fields={"If-None-Match": feed.get("ETag")})
    check("feed: a reader that has it gets 304 from the cache",
          answer.status == 304 and answer.says_hit(), seen(answer))
    answer = Visitor(_ga="GA1.2.3", _fbp="fb.1.2").open("/")
    check("tracking cookies do not split the cache", is_hit(answer, front), seen(answer))
    answer = Visitor().open("/?utm_source=mail&gclid=x")
    check("tracking parameters do not split the cache", is_hit(answer, front), seen(answer))
    answer = Visitor().ask("HEAD", "/")
    check("HEAD is answered from the stored GET", is_hit(answer, front) and not answer.body, seen(answer))


def many_at_once():
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: Visitor().open("/post-50/"), range(20)))
    one = len({a.stamp for a in answers}) == 1 and len({a.body for a in answers}) == 1
    check("20 first requests at once: one origin request, one body", one, len({a.stamp for a in answers}))


def logged_in():
    reader = Visitor()
    never_hit("login page is never a hit", Visitor(), "/wp-login.php")
    check("login works through Larder", reader.log_in())
    own = never_hit("logged in, a page nobody else has seen: never a hit", reader, "/post-120/")
    check("logged in: the page has the admin bar", all(ADMIN_BAR in a.body for a in own))
    stamps = {a.stamp for a in own}
    strangers = [Visitor().open("/post-120/") for _ in range(2)]
    apart = all(ADMIN_BAR not in a.body and a.stamp not in stamps for a in strangers)
    check("an anonymous visitor then gets a page of their own", apart, seen(*strangers))
    check("whose second request is a hit", is_hit(strangers[1], strangers[0]), seen(*strangers))
    again = reader.open("/post-120/")
    check("the cached anonymous page is not served to the logged-in one",
          ADMIN_BAR in again.body and not again.says_hit(), seen(again))
    front = never_hit("logged in, the cached front page: never a hit", reader, "/")
    check("logged in: the front page has the admin bar", all(ADMIN_BAR in a.body for a in front))
    never_hit("dashboard is never a hit", reader, "/wp-admin/index.php")
    never_hit("profile is never a hit", reader, "/wp-admin/profile.php")
    answers = [Visitor().open("/wp-admin/profile.php") for _ in range(2)]
    check("anonymous visitors of the dashboard are sent to the login page",
          all(a.status == 302 and "wp-login" in a.get("Location") for a in answers), seen(*answers))
    private = never_hit("private post: its reader is never served from the cache", reader, "/private-post/")
    check("private post: its reader sees it", all(b"PRIVATE-CONTENT" in a.body for a in private))
    strangers = [Visitor().open("/private-post/") for _ in range(2)]
    check("private post: nobody else does",
          all(a.status == 404 and b"PRIVATE-CONTENT" not in a.body for a in strangers), seen(*strangers))
    answer = Visitor(wordpress_logged_in_x="forged").open("/post-120/")
    check("a forged session cookie is not served from the cache", not answer.says_hit(), seen(answer))
    answer = Visitor().open("/post-119/", fields={"Authorization": "Basic eDp5"})
    answer = Visitor().open("/post-119/", fields={"Authorization": "Basic eDp5"})
    check("a request with Authorization is not served from the cache", not answer.says_hit(), seen(answer))


def behind_a_password():
    path = "/behind-a-password/"
    mark = b"PROTECTED-CONTENT"
    strangers = [Visitor().open(path) for _ in range(2)]
    check("password-protected post: strangers see the form", all(mark not in a.body for a in strangers))
    knower = Visitor()
    form = {"post_password": "post-password", "Submit": "Enter"}
    answer = knower.ask("POST", "/wp-login.php?action=postpass", form, {"Referer": BASE.geturl() + path})
    got = any(name.startswith("wp-postpass_") for name in knower.jar)
    check("the password is taken", answer.status == 302 and got, answer.status)
    open_ = never_hit("with the password: never a hit", knower, path)
    check("with the password: the content is there", all(mark in a.body for a in open_))
    strangers = [Visitor().open(path) for _ in range(3)]
    check("strangers still see the form only", all(mark not in a.body for a in strangers), seen(*strangers))


def commenting():
    path = "/post-80/"
    page = Visitor().open(path).body.decode()
    marker = "name='comment_post_ID' value='"
    post_id = page.split(marker)[1].split("'")[0]
    author = Visitor()
    form = {"comment_post_ID": post_id, "author": "Erika Mustermann", "email": "erika@example.org",
            "comment": "WRITTEN BY ERIKA", "wp-comment-cookies-consent": "yes", "submit": "Post Comment"}
    answer = author.ask("POST", "/wp-comments-post.php", form)
    got = any(name.startswith("comment_author_") for name in author.jar)
    check("a comment is taken", answer.status == 302 and got, f"{answer.status} {sorted(author.jar)}")
    own = never_hit("with comment-author cookies: never a hit", author, path)
    prefilled = b'value="Erika Mustermann"'
    check("with comment-author cookies: the form knows its author", all(prefilled in a.body for a in own))
    strangers = [Visitor().open(path) for _ in range(3)]
    check("nobody else's form does", all(prefilled not in a.body for a in strangers), seen(*strangers))


def main():
    for part in (anonymous_pages, many_at_once, logged_in, behind_a_password, commenting):
        try:
            part()
        except Exception as error:  # one part's failure should not hide the others' results
            check(f"{part.__name__}: ran to its end", False, repr(error))
    width = max(len(what) for what, _, _ in rows)
    for what, good, got in rows:
        print(f"{what:<{width}}  {'ok' if good else 'FAILED':<6}  {got}")
    failed = sum(not good for _, good, _ in rows)
    print(f"WordPress through Larder: {len(rows) - failed} of {len(rows)} checks hold")
    sys.exit(failed != 0)


main()
