# Several sites on one cache, each in its own sub, with shared subs, and a default that refuses.
vcl 4.1;

import std;
import directors;
import header;
import var;

backend blog { .host = "127.0.0.1"; .port = "${o1}"; }
backend shop1 { .host = "127.0.0.1"; .port = "${o2}"; }
backend shop2 { .host = "127.0.0.1"; .port = "${o3}"; }
backend files { .host = "127.0.0.1"; .port = "${o4}"; .host_header = "files.internal"; }
backend nowhere none;

sub vcl_init {
    new shop = directors.round_robin();
    shop.add_backend(shop1);
    shop.add_backend(shop2);
}

sub normalise {
    set req.http.host = std.tolower(regsub(req.http.host, ":\d+$", ""));
    set req.http.host = regsub(req.http.host, "^www\.", "");
    unset req.http.X-Site;
}

sub strip_cookies {
    if (req.http.Cookie) {
        set req.http.Cookie = regsuball(";" + req.http.Cookie, ";\s*(_[a-z0-9_]+|utm[a-z]*|cookieconsent)=[^;]*", "");
        set req.http.Cookie = regsub(req.http.Cookie, "^[;\s]+", "");
        if (req.http.Cookie ~ "^\s*$") {
            unset req.http.Cookie;
        }
    }
}

sub recv_blog {
    set req.http.X-Site = "blog";
    set req.backend_hint = blog;
    call strip_cookies;
}

sub recv_shop {
    set req.http.X-Site = "shop";
    set req.backend_hint = shop.backend();
    call strip_cookies;
    if (req.url ~ "^/(cart|pay)") {
        return (pass);
    }
}

sub recv_files {
    set req.http.X-Site = "files";
    set req.backend_hint = files;
    unset req.http.Cookie;
    unset req.http.Host;
    set req.http.Host = "files.example";
    return (hash);
}

sub vcl_recv {
    call normalise;
    var.set("host", req.http.host);
    if (req.http.host == "blog.example") {
        call recv_blog;
    } elsif (req.http.host == "shop.example" || req.http.host ~ "\.shop\.example$") {
        call recv_shop;
    } elsif (req.http.host ~ "^(files|static)\.example$") {
        call recv_files;
    } else {
        set req.backend_hint = nowhere;
        return (synth(421, "Nobody is at home at " + req.http.host));
    }
}

sub vcl_hash {
    hash_data(req.http.X-Site);
}

sub vcl_backend_fetch {
    if (bereq.http.X-Site == "files") {
        unset bereq.http.Host;
    }
    unset bereq.http.X-Site;
}

sub vcl_backend_response {
    header.remove(beresp.http.Set-Cookie, "^_");
    if (bereq.url ~ "^/feed") {
        set beresp.ttl = 10m;
    }
    if (beresp.http.Cache-Control ~ "max-age" && beresp.ttl > 1h) {
        set beresp.http.X-Long = "yes";
    }
}

sub vcl_deliver {
    set resp.http.X-Host = var.get("host");
    set resp.http.X-Restarts = req.restarts;
}
