# The rules of the VCL that Magento ships for Varnish 7, written anew, for the test of the preset.
vcl 4.1;

import std;

backend default { .host = "127.0.0.1"; .port = "ORIGIN"; }

sub vcl_recv {
    if (req.url ~ "\?.+&.+") { set req.url = std.querysort(req.url); }
    if (req.method == "PURGE") {
        if (!req.http.X-Magento-Tags-Pattern && !req.http.X-Pool) { return (synth(400)); }
        if (req.http.X-Magento-Tags-Pattern) {
            ban("obj.http.X-Magento-Tags ~ " + req.http.X-Magento-Tags-Pattern);
        }
        if (req.http.X-Pool) { ban("obj.http.X-Pool ~ " + req.http.X-Pool); }
        return (synth(200));
    }
    if (req.method != "GET" && req.method != "HEAD") { return (pass); }
    if (req.url ~ "/customer" || req.url ~ "/checkout") { return (pass); }
    if (req.url ~ "^/(pub/)?health_check\.php$") { return (pass); }
    std.collect(req.http.Cookie);
    set req.url = regsuball(req.url, "(_branch_match_id|_bta_[a-z]+|_ga|_gl|_ke|_kx|campid|ceneo_cid|clickId|cof|customid|cx|dclid|dm_i|ef_id|epik|fbclid|gad_[a-z]+|gbraid|gclid|gclsrc|gdf[a-z]+|hsa_[a-z]+|igshid|mc_[a-z]+|mk[a-z]{3}|msclkid|(mtm|matomo)_[a-z]+|pcrid|p(iwi)?k_[a-z]+|redirect(_log)?_mongo_id|s_kwcid|sb_referer_host|ScCid|siteurl|snrai_[a-z]+|srsltid|tduid|trk_[a-z]+|utm_[a-z]+|wbraid|zanpid)=[-_A-z0-9+()%.]+&?", "");
    set req.url = regsub(req.url, "[?|&]+$", "");
    if (req.url ~ "^/(pub/)?(media|static)/") { return (pass); }
    if (req.url ~ "/graphql" && !req.http.X-Magento-Cache-Id && req.http.Authorization ~ "^Bearer") {
        return (pass);
    }
    return (hash);
}

sub vcl_hash {
    if ((req.url !~ "/graphql" || !req.http.X-Magento-Cache-Id) && req.http.Cookie ~ "X-Magento-Vary=") {
        hash_data(regsub(req.http.Cookie, "^.*?X-Magento-Vary=([^;]+);*.*$", "\1"));
    }
    if (req.url ~ "/graphql") {
        if (req.http.X-Magento-Cache-Id) {
            hash_data(req.http.X-Magento-Cache-Id);
            if (req.http.Authorization ~ "^Bearer") { hash_data("Authorized"); }
        }
        hash_data(req.http.Store);
        hash_data(req.http.Content-Currency);
    }
}

sub vcl_backend_response {
    if (beresp.status == 403 || beresp.status == 404 || beresp.status >= 500) {
        set beresp.uncacheable = true;
        set beresp.ttl = 120s;
        return (deliver);
    }
    set beresp.grace = 3d;
    if (beresp.http.Content-Type ~ "text") { set beresp.do_esi = true; }
    if (beresp.http.Cache-Control ~ "private") {
        set beresp.uncacheable = true;
        set beresp.ttl = 86400s;
        return (deliver);
    }
    if (beresp.ttl > 0s && (bereq.method == "GET" || bereq.method == "HEAD")) {
        std.collect(beresp.http.Set-Cookie);
        if ((bereq.url !~ "/graphql" || !bereq.http.X-Magento-Cache-Id)
            && bereq.http.Cookie !~ "X-Magento-Vary="
            && beresp.http.Set-Cookie ~ "X-Magento-Vary=") {
            set beresp.ttl = 0s;
            set beresp.uncacheable = true;
        }
        unset beresp.http.Set-Cookie;
    }
    if (beresp.ttl <= 0s || beresp.http.Surrogate-Control ~ "no-store"
        || (!beresp.http.Surrogate-Control && beresp.http.Cache-Control ~ "no-cache|no-store")
        || beresp.http.Vary == "*") {
        set beresp.ttl = 120s;
        set beresp.uncacheable = true;
    }
    if (bereq.url ~ "/graphql" && bereq.http.X-Magento-Cache-Id
        && bereq.http.X-Magento-Cache-Id != beresp.http.X-Magento-Cache-Id) {
        set beresp.ttl = 0s;
        set beresp.uncacheable = true;
    }
    return (deliver);
}

sub vcl_deliver {
    if (resp.http.Cache-Control !~ "private" && req.url !~ "^/(pub/)?(media|static)/") {
        set resp.http.Pragma = "no-cache";
        set resp.http.Expires = "-1";
        set resp.http.Cache-Control = "no-store, no-cache, must-revalidate, max-age=0";
    }
    unset resp.http.X-Magento-Tags;
}
