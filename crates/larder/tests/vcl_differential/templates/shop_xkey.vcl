# A shop with surrogate keys, in the manner of Shopware: xkey for entities, the hash by state cookies.
vcl 4.1;

import std;
import xkey;
import cookie;

backend default {
    .host = "127.0.0.1";
    .port = "${o1}";
}

acl purgers {
    "127.0.0.1";
    "localhost";
}

sub vcl_recv {
    if (req.method == "PURGE") {
        if (client.ip !~ purgers) {
            return (synth(403, "Forbidden"));
        }
        if (req.http.xkey) {
            set req.http.n-gone = xkey.purge(req.http.xkey);
            return (synth(200, "Invalidated " + req.http.n-gone + " objects"));
        }
        return (purge);
    }
    if (req.method == "SOFTPURGE") {
        if (client.ip !~ purgers) {
            return (synth(403, "Forbidden"));
        }
        set req.http.n-gone = xkey.softpurge(req.http.xkey);
        return (synth(200, "Soft-invalidated " + req.http.n-gone + " objects"));
    }
    if (req.method == "BAN") {
        if (client.ip !~ purgers) {
            return (synth(403, "Forbidden"));
        }
        ban("req.url ~ " + req.url);
        return (synth(200, "BAN URLs containing (" + req.url + ") done."));
    }
    unset req.http.x-cache-hash;
    set req.url = std.querysort(req.url);
    set req.url = regsuball(req.url, "(^|[?&])(pk_campaign|gclid|utm_[a-z]+)=[^&]*", "\1");
    set req.url = regsuball(req.url, "&&+", "&");
    set req.url = regsub(req.url, "(\?&?|&)$", "");
    set req.url = regsub(req.url, "\?&", "?");
    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
    if (req.url ~ "^/(checkout|account|admin|api)(/|$|\?)") {
        return (pass);
    }
    cookie.parse(req.http.cookie);
    set req.http.cache-hash = cookie.get("sw-cache-hash");
    set req.http.currency = cookie.get("sw-currency");
    set req.http.states = cookie.get("sw-states");
    if (req.url == "/widgets/cart" && req.http.states == "") {
        return (synth(204, ""));
    }
    if (cookie.isset("session-")) {
        set req.http.x-has-session = "1";
    }
    cookie.keep("sw-cache-hash,sw-currency,sw-states");
    set req.http.cookie = cookie.get_string();
    if (req.http.cookie == "") {
        unset req.http.cookie;
    }
    set req.http.Surrogate-Capability = "shopware=ESI/1.0";
    return (hash);
}

sub vcl_hash {
    if (req.http.cache-hash != "") {
        hash_data("+context=" + req.http.cache-hash);
    } elseif (req.http.currency != "") {
        hash_data("+currency=" + req.http.currency);
    }
}

sub vcl_hit {
    # Who is logged in or has a cart must not get what was made for those who have not.
    if (obj.http.sw-invalidation-states ~ "logged-in" && req.http.states ~ "logged-in") {
        return (pass);
    }
    if (obj.http.sw-invalidation-states ~ "cart-filled" && req.http.states ~ "cart-filled") {
        return (pass);
    }
}

sub vcl_backend_response {
    if (beresp.http.Surrogate-Control ~ "ESI/1.0") {
        unset beresp.http.Surrogate-Control;
    }
    if (bereq.url ~ "\.js$" || beresp.http.content-type ~ "text") {
        set beresp.do_gzip = true;
    }
    if (beresp.ttl > 0s && (bereq.method == "GET" || bereq.method == "HEAD")) {
        unset beresp.http.set-cookie;
    }
    set beresp.grace = 3m;
}

sub vcl_deliver {
    if (resp.http.Cache-Control !~ "private" && req.url !~ "^/(theme|media|thumbnail|bundles)/") {
        set resp.http.Pragma = "no-cache";
        set resp.http.Expires = "-1";
        set resp.http.Cache-Control = "no-store, no-cache, must-revalidate, max-age=0";
    }
    unset resp.http.sw-invalidation-states;
    unset resp.http.xkey;
    unset resp.http.X-Varnish;
    unset resp.http.Via;
    unset resp.http.Link;
    set resp.http.X-Cache-Hits = obj.hits;
}
