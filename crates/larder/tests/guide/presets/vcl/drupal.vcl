# What VCLs for Drupal have in common (drupal.org's handbook, the Purge and Varnish Purger modules), written
# anew, for the test of the preset.
vcl 4.1;

import std;
import cookie;

backend default { .host = "127.0.0.1"; .port = "ORIGIN"; }

sub vcl_recv {
    if (req.method == "BAN") {
        if (!req.http.Purge-Cache-Tags) { return (synth(403)); }
        ban("obj.http.Purge-Cache-Tags ~ " + req.http.Purge-Cache-Tags);
        return (synth(200));
    }
    if (req.method == "URIBAN") {
        ban("req.http.host == " + req.http.host + " && req.url == " + req.url);
        return (synth(200));
    }
    if (req.method != "GET" && req.method != "HEAD") { return (pass); }
    if (req.http.Authorization) { return (pass); }
    if (req.url ~ "^/(status|update|install|cron|apc)\.php$" || req.url ~ "^/admin(/.*)?$"
        || req.url ~ "^/user(/.*)?$" || req.url ~ "^/flag/.*$" || req.url ~ "/(ajax|ahah)/"
        || req.url ~ "^/system/files/") {
        return (pass);
    }
    if (req.url ~ "(?i)\.(css|js|jpg|jpeg|gif|png|ico|svg|woff2?)(\?.*)?$") { unset req.http.Cookie; }
    if (req.http.Cookie) {
        cookie.parse(req.http.Cookie);
        cookie.keep_re("^(S?SESS[a-z0-9]+|NO_CACHE)$");
        set req.http.Cookie = cookie.get_string();
        if (req.http.Cookie == "") { unset req.http.Cookie; } else { return (pass); }
    }
    return (hash);
}

sub vcl_deliver { unset resp.http.Purge-Cache-Tags; }
