# An API's front: keys, limits by client and path, and what is refused early.
vcl 4.1;

import vsthrottle;
import std;

backend default {
    .host = "127.0.0.1";
    .port = "${o1}";
}

acl friends {
    "192.0.2.0"/24;
}

sub vcl_recv {
    unset req.http.X-Limit;
    if (req.url ~ "^/api/" && !req.http.X-Api-Key) {
        return (synth(401, "No key"));
    }
    if (req.http.X-Api-Key && req.http.X-Api-Key !~ "^[a-f0-9]{8}$") {
        return (synth(403, "Bad key"));
    }
    if (client.ip !~ friends) {
        if (req.url ~ "^/login") {
            if (vsthrottle.is_denied("login:" + req.http.host + client.identity, 2, 60s)) {
                set req.http.X-Limit = "login";
                return (synth(429, "Too Many Requests"));
            }
        }
        if (req.url ~ "^/api/") {
            if (vsthrottle.is_denied("api:" + req.http.host + req.http.X-Api-Key, 3, 60s)) {
                set req.http.X-Limit = "api";
                return (synth(429, "Too Many Requests"));
            }
            set req.http.X-Remaining = vsthrottle.remaining("api:" + req.http.host + req.http.X-Api-Key, 3, 60s);
        }
    }
    if (req.http.User-Agent ~ "(?i)(scrapy|masscan|python-requests)") {
        return (synth(403, "Go away"));
    }
    if (req.url ~ "(?i)\.(asp|aspx|php|env)$|/\.git/") {
        return (synth(404));
    }
    if (req.url ~ "^/api/") {
        return (pass);
    }
}

sub vcl_deliver {
    if (req.http.X-Remaining) {
        set resp.http.X-RateLimit-Remaining = req.http.X-Remaining;
    }
}

sub vcl_synth {
    set resp.http.Content-Type = "application/json";
    if (resp.status == 429) {
        set resp.http.Retry-After = "60";
        set resp.http.X-Limit = req.http.X-Limit;
    }
    if (resp.status == 401) {
        set resp.http.WWW-Authenticate = {"Key realm="api""};
    }
    set resp.body = {"{"error":"} + resp.status + {","message":""} + resp.reason + {"" }"};
    return (deliver);
}
