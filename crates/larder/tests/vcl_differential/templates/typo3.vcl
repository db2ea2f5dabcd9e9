# TYPO3: editors with their cookie pass, tags by BAN, pages by the time to live that TYPO3 gives.
vcl 4.0;

backend default {
    .host = "127.0.0.1";
    .port = "${o1}";
}

acl banners {
    "127.0.0.1";
}

sub vcl_recv {
    set req.backend_hint = default;
    if (req.method == "BAN") {
        if (client.ip !~ banners) {
            return (synth(405, "Method not allowed"));
        }
        if (req.http.Varnish-Ban-All == "1" && req.http.Varnish-Ban-TYPO3-Sitename) {
            ban("req.url ~ /" + " && obj.http.TYPO3-Sitename == " + req.http.Varnish-Ban-TYPO3-Sitename);
            return (synth(200, "Banned all on site " + req.http.Varnish-Ban-TYPO3-Sitename));
        } else if (req.http.Varnish-Ban-All == "1") {
            ban("req.url ~ /");
            return (synth(200, "Banned all"));
        }
        if (req.http.Varnish-Ban-TYPO3-Pid && req.http.Varnish-Ban-TYPO3-Sitename) {
            ban("obj.http.TYPO3-Pid == " + req.http.Varnish-Ban-TYPO3-Pid
                + " && obj.http.TYPO3-Sitename == " + req.http.Varnish-Ban-TYPO3-Sitename);
            return (synth(200, "Banned TYPO3 pid " + req.http.Varnish-Ban-TYPO3-Pid
                + " on site " + req.http.Varnish-Ban-TYPO3-Sitename));
        } else if (req.http.Varnish-Ban-TYPO3-Pid) {
            ban("obj.http.TYPO3-Pid == " + req.http.Varnish-Ban-TYPO3-Pid);
            return (synth(200, "Banned TYPO3 pid " + req.http.Varnish-Ban-TYPO3-Pid));
        }
        return (synth(400, "Nothing to ban"));
    }
    if (req.http.X-Forwarded-For ~ ".") {
        set req.http.X-Seen-For = regsub(req.http.X-Forwarded-For, "^.*, *", "");
    }
    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
    if (req.http.cookie ~ "be_typo_user" || req.url ~ "^/typo3(/|$)") {
        return (pass);
    }
    if (req.http.cookie ~ "fe_typo_user=") {
        return (pass);
    }
    if (req.http.Authorization) {
        return (pass);
    }
    unset req.http.Cookie;
    return (hash);
}

sub vcl_backend_response {
    if (beresp.http.TYPO3-Pid && beresp.http.Cache-Control !~ "private") {
        unset beresp.http.Set-Cookie;
    }
    if (bereq.url ~ "\.(css|js|png|gif|jpg|svg|woff2?)(\?[0-9]+)?$") {
        set beresp.ttl = 2w;
        unset beresp.http.Set-Cookie;
    }
    if (beresp.http.X-Cache-Lifetime) {
        if (beresp.http.X-Cache-Lifetime == "0") {
            set beresp.uncacheable = true;
            set beresp.ttl = 60s;
            return (deliver);
        }
        set beresp.ttl = 12h;
    }
}

sub vcl_deliver {
    if (obj.hits > 0) {
        set resp.http.X-Cache = "HIT";
    } else {
        set resp.http.X-Cache = "MISS";
    }
    if (resp.http.X-Tags-Debug != "1") {
        unset resp.http.TYPO3-Pid;
        unset resp.http.TYPO3-Sitename;
    }
    unset resp.http.X-Cache-Lifetime;
}
