# An API gateway: versions and services by path, keys and tokens looked at, CORS, a budget for each
# key, answers cached by who asks, errors in JSON, backends that fail left alone for a while.
vcl 4.1;

import std;
import directors;
import vsthrottle;
import header;
import cookie;
import blob;
import str;
import var;

backend users {
    .host = "127.0.0.1";
    .port = "${o1}";
    .connect_timeout = 1s;
    .first_byte_timeout = 5s;
}

backend orders {
    .host = "127.0.0.1";
    .port = "${o2}";
    .max_connections = 50;
}

backend orders_spare {
    .host = "127.0.0.1";
    .port = "${o3}";
}

backend assets {
    .host = "127.0.0.1";
    .port = "${o4}";
}

acl internal {
    "198.51.100.0"/24;
    ! "198.51.100.13";
    "2001:db8::"/32;
}

sub vcl_init {
    new order_pool = directors.fallback(sticky = true);
    order_pool.add_backend(orders);
    order_pool.add_backend(orders_spare);
    new asset_pool = directors.hash();
    asset_pool.add_backend(assets, 1.0);
}

# What only the gateway may say.
sub strip_own_headers {
    unset req.http.X-Service;
    unset req.http.X-Client;
    unset req.http.X-Api-Version;
    unset req.http.X-Scope;
    unset req.http.X-Cors;
    unset req.http.X-Left;
}

sub route {
    if (req.url ~ "^/v[0-9]+/") {
        set req.http.X-Api-Version = regsub(req.url, "^/v([0-9]+)/.*$", "\1");
        set req.url = regsub(req.url, "^/v[0-9]+", "");
    } elsif (req.http.Accept ~ "application/vnd\.shop\.v[0-9]+\+json") {
        set req.http.X-Api-Version = regsub(req.http.Accept,
            "^.*application/vnd\.shop\.v([0-9]+)\+json.*$", "\1");
    } else {
        set req.http.X-Api-Version = "1";
    }
    if (std.integer(req.http.X-Api-Version, 0) < 1 || std.integer(req.http.X-Api-Version, 0) > 3) {
        return (synth(400, "Unknown version"));
    }
    if (req.url ~ "^/users(/|\?|$)") {
        set req.http.X-Service = "users";
        set req.backend_hint = users;
    } else if (req.url ~ "^/orders(/|\?|$)") {
        set req.http.X-Service = "orders";
        set req.backend_hint = order_pool.backend();
    } elseif (str.startswith(req.url, "/assets/")) {
        set req.http.X-Service = "assets";
        set req.backend_hint = asset_pool.backend(req.url);
    } else {
        return (synth(404, "No such service"));
    }
}

sub cross_origin {
    if (req.http.Origin ~ "^https://([a-z0-9-]+\.)?shop\.example$") {
        set req.http.X-Cors = req.http.Origin;
    }
    if (req.method == "OPTIONS" && req.http.Access-Control-Request-Method) {
        if (req.http.X-Cors) {
            return (synth(204, "Preflight"));
        }
        return (synth(403, "Origin not allowed"));
    }
}

# A token of three parts; the gateway reads the second one and leaves its seal to the service.
sub who_asks {
    if (req.http.Authorization ~ "^Bearer [A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$") {
        set req.http.X-Token = regsub(req.http.Authorization, "^Bearer [^.]+\.([^.]+)\..*$", "\1");
        set req.http.X-Claims = blob.transcode(BASE64URLNOPAD, IDENTITY, encoded = req.http.X-Token);
        unset req.http.X-Token;
        if (req.http.X-Claims ~ {""sub":"[^"]+"[,}]"}) {
            set req.http.X-Client = "user-" + regsub(req.http.X-Claims, {"^.*"sub":"([^"]+)".*$"}, "\1");
        }
        if (req.http.X-Claims ~ {""scope":"[^"]*\badmin\b"}) {
            set req.http.X-Scope = "admin";
        }
        if (req.http.X-Claims ~ {""exp":[0-9]+"}
                && std.time(regsub(req.http.X-Claims, {"^.*"exp":([0-9]+).*$"}, "\1"), now) < now) {
            unset req.http.X-Claims;
            return (synth(401, "Token expired"));
        }
        unset req.http.X-Claims;
    } elsif (req.http.Authorization) {
        return (synth(401, "Token not understood"));
    } elsif (req.http.X-Api-Key ~ "^[a-f0-9]{8}$") {
        set req.http.X-Client = "key-" + req.http.X-Api-Key.lower();
    } elsif (req.http.Cookie) {
        cookie.parse(req.http.Cookie);
        if (cookie.isset("session")) {
            set req.http.X-Client = "session-" + cookie.get("session");
        }
    }
    if (!req.http.X-Client) {
        if (client.ip !~ internal && req.http.X-Service != "assets") {
            return (synth(401, "Who are you?"));
        }
        set req.http.X-Client = "anyone";
    }
}

sub budget {
    if (client.ip ~ internal) {
        return;
    }
    if (vsthrottle.is_denied("gateway:" + req.http.X-Client, 4, 300s)) {
        return (synth(429, "Too Many Requests"));
    }
    set req.http.X-Left = vsthrottle.remaining("gateway:" + req.http.X-Client, 4, 300s);
}

sub vcl_recv {
    if (req.restarts == 0) {
        call strip_own_headers;
        if (req.method == "PURGE") {
            if (client.ip !~ internal) {
                return (synth(405, "Not allowed"));
            }
            return (purge);
        }
        call route;
        call cross_origin;
        call who_asks;
        call budget;
        var.set("service", req.http.X-Service);
    }
    if (req.http.X-Scope != "admin" && req.url ~ "^/users/[0-9]+/secrets") {
        return (synth(403, "Admins only"));
    }
    unset req.http.Cookie;
    set req.url = std.querysort(regsuball(req.url, "([?&])(utm_[a-z]+|_)=[^&]*(&|$)", "\1"));
    set req.url = regsub(req.url, "[?&]+$", "");
    if (req.method != "GET" && req.method != "HEAD") {
        if (std.integer(req.http.Content-Length, 0) > 1000) {
            return (synth(413, "Too much"));
        }
        return (pass);
    }
    if (req.http.Cache-Control ~ "no-cache" && client.ip ~ internal) {
        set req.hash_always_miss = true;
    }
    return (hash);
}

sub vcl_hash {
    hash_data(req.http.X-Api-Version);
    if (req.http.X-Service != "assets") {
        hash_data(req.http.X-Client);
    }
}

sub vcl_backend_fetch {
    set bereq.http.X-Request-For = bereq.http.X-Service + "/" + bereq.http.X-Api-Version;
    unset bereq.http.X-Left;
    unset bereq.http.X-Cors;
    if (bereq.http.X-Service == "orders" && bereq.retries > 0) {
        set bereq.backend = orders_spare;
        set bereq.http.X-Retry = bereq.retries;
    }
    if (bereq.http.X-Service == "users") {
        set bereq.first_byte_timeout = 2s;
    }
}

sub vcl_backend_response {
    if (beresp.status >= 500 && bereq.method == "GET" && bereq.retries < 1) {
        return (retry);
    }
    header.remove(beresp.http.Set-Cookie, "^tracking=");
    if (beresp.http.Set-Cookie) {
        set beresp.uncacheable = true;
        set beresp.ttl = 30s;
        return (deliver);
    }
    if (beresp.http.X-Cache-For) {
        set beresp.ttl = std.duration(beresp.http.X-Cache-For, 10s);
        unset beresp.http.X-Cache-For;
    } elsif (beresp.status == 404) {
        set beresp.ttl = 5s;
    } elsif (bereq.http.X-Service == "assets") {
        set beresp.ttl = 1d;
        set beresp.http.Cache-Control = "public, max-age=" + std.integer(duration = beresp.ttl);
    }
    set beresp.grace = 10s;
    set beresp.http.X-Stored-By = beresp.backend.name + " " + beresp.ttl;
    return (deliver);
}

sub vcl_backend_error {
    set beresp.http.Content-Type = "application/json";
    set beresp.ttl = 1s;
    synthetic({"{"error": ""} + beresp.reason + {"", "service": ""} + bereq.http.X-Service
        + {"" }"});
    return (deliver);
}

sub vcl_deliver {
    if (req.http.X-Cors) {
        set resp.http.Access-Control-Allow-Origin = req.http.X-Cors;
        set resp.http.Access-Control-Expose-Headers = "X-Left, X-Cache";
        if (resp.http.Vary) {
            set resp.http.Vary += ", Origin";
        } else {
            set resp.http.Vary = "Origin";
        }
    }
    if (obj.hits > 0) {
        set resp.http.X-Cache = "hit " + obj.hits;
    } else {
        set resp.http.X-Cache = "miss";
    }
    if (req.http.X-Left) {
        set resp.http.X-Left = req.http.X-Left;
    }
    set resp.http.X-Service = var.get("service");
    unset resp.http.X-Powered-By;
    unset resp.http.Server;
}

sub vcl_synth {
    if (resp.status == 204) {
        set resp.http.Access-Control-Allow-Origin = req.http.X-Cors;
        set resp.http.Access-Control-Allow-Methods = "GET, POST, PUT, DELETE";
        set resp.http.Access-Control-Allow-Headers = req.http.Access-Control-Request-Headers;
        set resp.http.Access-Control-Max-Age = std.integer(duration = 1h);
        set resp.body = "";
        return (deliver);
    }
    if (resp.status == 401) {
        set resp.http.WWW-Authenticate = {"Bearer realm="shop""};
    }
    if (resp.status == 429) {
        set resp.http.Retry-After = std.integer(duration = 5m);
    }
    set resp.http.Content-Type = "application/json; charset=utf-8";
    set resp.body = {"{"status": "} + resp.status + {", "error": ""} + resp.reason + {"" }"};
    return (deliver);
}
