# Drupal 8 and later: cache tags by BAN, URIBAN for paths, the session cookie passes, files do not.
vcl 4.0;

import std;

backend default {
    .host = "127.0.0.1";
    .port = "${o1}";
    .first_byte_timeout = 30s;
}

acl invalidators {
    "127.0.0.1";
    "192.0.2.0"/24;
}

sub vcl_recv {
    if (req.restarts == 0) {
        if (req.http.X-Forwarded-For && req.http.X-Proxied) {
            set req.http.X-Forwarded-For = req.http.X-Forwarded-For + ", " + client.ip;
        } else {
            set req.http.X-Forwarded-For = client.ip;
        }
    }
    if (req.method == "BAN") {
        if (client.ip !~ invalidators) {
            return (synth(403, "Not allowed."));
        }
        if (req.http.Cache-Tags) {
            ban("obj.http.Cache-Tags ~ " + "#" + req.http.Cache-Tags + "#");
        } else {
            return (synth(403, "Cache-Tags header missing."));
        }
        return (synth(200, "Ban added."));
    }
    if (req.method == "URIBAN") {
        if (client.ip !~ invalidators) {
            return (synth(403, "Not allowed."));
        }
        ban("req.http.host == " + req.http.host + " && req.url == " + req.url);
        return (synth(200, "Ban added."));
    }
    if (req.method == "REFRESH") {
        if (client.ip !~ invalidators) {
            return (synth(403, "Not allowed."));
        }
        set req.method = "GET";
        set req.hash_always_miss = true;
    }
    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
    if (req.url ~ "^/(status|update|cron)\.php" || req.url ~ "^/(admin|user|flag)(/.*)?$" ||
        req.url ~ "^/.*/ajax/.*$" || req.url ~ "^/system/files/") {
        return (pass);
    }
    if (req.url ~ "(?i)\.(pdf|asc|dat|txt|doc|xls|ppt|tgz|csv|png|gif|jpeg|jpg|ico|swf|css|js)(\?.*)?$") {
        unset req.http.Cookie;
    }
    if (req.http.Cookie) {
        set req.http.Cookie = ";" + req.http.Cookie;
        set req.http.Cookie = regsuball(req.http.Cookie, "; +", ";");
        set req.http.Cookie = regsuball(req.http.Cookie, ";(SESS[a-z0-9]+|SSESS[a-z0-9]+|NO_CACHE)=", "; \1=");
        set req.http.Cookie = regsuball(req.http.Cookie, ";[^ ][^;]*", "");
        set req.http.Cookie = regsuball(req.http.Cookie, "^[; ]+|[; ]+$", "");
        if (req.http.Cookie == "") {
            unset req.http.Cookie;
        } else {
            return (pass);
        }
    }
    if (req.http.Accept-Encoding) {
        if (req.url ~ "\.(jpg|png|gif|gz|tgz)$") {
            unset req.http.Accept-Encoding;
        } elsif (req.http.Accept-Encoding ~ "gzip") {
            set req.http.Accept-Encoding = "gzip";
        } else {
            unset req.http.Accept-Encoding;
        }
    }
    return (hash);
}

sub vcl_backend_response {
    set beresp.http.X-Url = bereq.url;
    set beresp.http.X-Host = bereq.http.host;
    if (beresp.http.Cache-Tags) {
        # Bounded, so that one tag is not found inside another.
        set beresp.http.Cache-Tags = "#" + regsuball(beresp.http.Cache-Tags, "\s+", "#") + "#";
    }
    if (bereq.url ~ "(?i)\.(pdf|asc|dat|txt|doc|xls|ppt|tgz|csv|png|gif|jpeg|jpg|ico|swf|css|js)(\?.*)?$") {
        unset beresp.http.set-cookie;
    }
    if (beresp.status >= 500 && bereq.retries < 1) {
        return (retry);
    }
    if (beresp.status == 404) {
        set beresp.ttl = 10m;
    }
    set beresp.grace = 6h;
}

sub vcl_backend_error {
    set beresp.http.Content-Type = "text/html; charset=utf-8";
    set beresp.http.Retry-After = "5";
    synthetic({"<html><head><title>Page Unavailable</title></head>
<body><h1>Page Unavailable</h1>
<p>The page you requested is temporarily unavailable ("} + beresp.status + {").</p>
</body></html>
"});
    return (deliver);
}

sub vcl_deliver {
    unset resp.http.X-Url;
    unset resp.http.X-Host;
    unset resp.http.Cache-Tags;
    if (obj.hits > 0) {
        set resp.http.X-Varnish-Cache = "HIT";
    } else {
        set resp.http.X-Varnish-Cache = "MISS";
    }
}
