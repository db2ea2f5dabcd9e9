# The user context of FOSHttpCache: a first request fetches a hash of what the user may see, then
# the request is restarted and the page varies by that hash.
vcl 4.0;

backend default {
    .host = "127.0.0.1";
    .port = "${o1}";
}

acl invalidators {
    "127.0.0.1";
}

sub fos_user_context_recv {
    if (req.restarts == 0 &&
        (req.http.accept ~ "application/vnd.fos.user-context-hash" || req.http.X-User-Context-Hash)) {
        return (synth(400));
    }
    if (req.restarts == 0 && (req.http.cookie || req.http.authorization) &&
        (req.method == "GET" || req.method == "HEAD")) {
        set req.http.X-Fos-Original-Url = req.url;
        set req.http.X-Fos-Original-Accept = req.http.accept;
        set req.http.X-Fos-Original-Cookie = req.http.cookie;
        set req.http.cookie = regsuball(";" + req.http.cookie, "; *(?!PHPSESSID)[^;=]+=[^;]*", "");
        set req.http.cookie = regsub(req.http.cookie, "^; *", "");
        set req.http.accept = "application/vnd.fos.user-context-hash";
        set req.url = "/_fos_user_context_hash";
        return (hash);
    }
    if (req.restarts > 0 && req.http.accept == "application/vnd.fos.user-context-hash") {
        set req.url = req.http.X-Fos-Original-Url;
        set req.http.accept = req.http.X-Fos-Original-Accept;
        set req.http.cookie = req.http.X-Fos-Original-Cookie;
        unset req.http.X-Fos-Original-Url;
        unset req.http.X-Fos-Original-Accept;
        unset req.http.X-Fos-Original-Cookie;
        return (hash);
    }
}

sub vcl_recv {
    if (req.method == "BAN") {
        if (client.ip !~ invalidators) {
            return (synth(405, "Not allowed"));
        }
        if (req.http.X-Cache-Tags) {
            ban("obj.http.X-Host ~ " + req.http.X-Host
                + " && obj.http.X-Url ~ " + req.http.X-Url
                + " && obj.http.content-type ~ " + req.http.X-Content-Type
                + " && obj.http.X-Cache-Tags ~ " + req.http.X-Cache-Tags);
        } else {
            ban("obj.http.X-Host ~ " + req.http.X-Host
                + " && obj.http.X-Url ~ " + req.http.X-Url
                + " && obj.http.content-type ~ " + req.http.X-Content-Type);
        }
        return (synth(200, "Banned"));
    }
    if (req.http.Cache-Control ~ "no-cache" && client.ip ~ invalidators) {
        set req.hash_always_miss = true;
    }
    call fos_user_context_recv;
    if (!req.http.cookie && !req.http.authorization) {
        return (hash);
    }
}

sub vcl_hash {
    if (req.http.accept == "application/vnd.fos.user-context-hash") {
        hash_data(req.http.cookie);
        hash_data(req.http.authorization);
    }
}

sub vcl_backend_response {
    set beresp.http.X-Url = bereq.url;
    set beresp.http.X-Host = bereq.http.host;
    if (bereq.http.accept ~ "application/vnd.fos.user-context-hash" && beresp.status >= 500) {
        return (abandon);
    }
}

sub vcl_deliver {
    if (req.restarts == 0 && resp.http.content-type ~ "application/vnd.fos.user-context-hash") {
        set req.http.X-User-Context-Hash = resp.http.X-User-Context-Hash;
        return (restart);
    }
    set resp.http.Vary = regsub(resp.http.Vary, "(?i),? *X-User-Context-Hash *", "");
    set resp.http.Vary = regsub(resp.http.Vary, "^, *", "");
    if (resp.http.Vary == "") {
        unset resp.http.Vary;
    }
    unset resp.http.X-User-Context-Hash;
    if (!resp.http.X-Cache-Debug) {
        unset resp.http.X-Url;
        unset resp.http.X-Host;
        unset resp.http.X-Cache-Tags;
    }
    if (obj.hits > 0) {
        set resp.http.X-Cache = "HIT";
    } else {
        set resp.http.X-Cache = "MISS";
    }
}
