# What stands before a site: maintenance, redirects, basic authentication, canonical hosts and URLs.
vcl 4.1;

import std;
import blob;

backend default {
    .host = "127.0.0.1";
    .port = "${o1}";
}

acl office {
    "192.0.2.0"/24;
    "2001:db8::"/32;
}

sub vcl_recv {
    # Canonical host first, so that nothing else is stored twice.
    if (req.http.host ~ "^(?i)example\.com(:[0-9]+)?$") {
        return (synth(801, "https://www.example.com" + req.url));
    }
    if (req.http.X-Maintenance && client.ip !~ office) {
        return (synth(503, "Maintenance"));
    }
    unset req.http.X-Maintenance;

    if (req.url ~ "^/old-blog/([0-9]+)") {
        return (synth(801, regsub(req.url, "^/old-blog/([0-9]+)/?.*$", "/blog/\1")));
    }
    if (req.url ~ "^/promo(\?.*)?$") {
        return (synth(802, "/campaigns/spring" + regsub(req.url, "^/promo", "")));
    }
    if (req.url ~ "[A-Z]" && req.url !~ "\?") {
        return (synth(801, std.tolower(req.url)));
    }
    if (req.url ~ "^/.+/$") {
        return (synth(801, regsub(req.url, "/+$", "")));
    }

    if (req.url ~ "^/staging" && client.ip !~ office) {
        if (req.http.Authorization != "Basic " + blob.transcode(IDENTITY, BASE64, encoded = "user:secret")) {
            return (synth(401, "Restricted"));
        }
        unset req.http.Authorization;
    }

    # Order, doubles and trackers make no difference.
    set req.url = regsuball(req.url, "([?&])(utm_[^=&]+|gclid|fbclid)=[^&]*", "\1");
    set req.url = regsuball(req.url, "([?&])&+", "\1");
    set req.url = regsub(req.url, "[?&]+$", "");
    set req.url = std.querysort(req.url);

    if (req.http.Accept ~ "image/webp" && req.url ~ "\.(jpe?g|png)$") {
        set req.http.X-Webp = "1";
    }
}

sub vcl_hash {
    if (req.http.X-Webp) {
        hash_data("webp");
    }
}

sub vcl_backend_fetch {
    if (bereq.http.X-Webp) {
        set bereq.url = bereq.url + ".webp";
    }
}

sub vcl_backend_response {
    if (bereq.http.X-Webp && beresp.status == 404 && bereq.retries == 0) {
        unset bereq.http.X-Webp;
        set bereq.url = regsub(bereq.url, "\.webp$", "");
        return (retry);
    }
    if (beresp.http.Content-Type ~ "^text/html") {
        set beresp.http.X-Frame-Options = "SAMEORIGIN";
        set beresp.http.Content-Security-Policy = "default-src 'self'";
    }
}

sub vcl_deliver {
    set resp.http.Strict-Transport-Security = "max-age=31536000";
    set resp.http.X-Content-Type-Options = "nosniff";
    unset resp.http.X-Powered-By;
    unset resp.http.Server;
}

sub vcl_synth {
    if (resp.status == 801) {
        set resp.status = 301;
        set resp.http.Location = resp.reason;
        set resp.reason = "Moved Permanently";
        set resp.http.Cache-Control = "max-age=3600";
        synthetic("");
        return (deliver);
    }
    if (resp.status == 802) {
        set resp.http.Location = resp.reason;
        set resp.status = 302;
        set resp.reason = "Found";
        synthetic("");
        return (deliver);
    }
    if (resp.status == 401) {
        set resp.http.WWW-Authenticate = {"Basic realm="Staging""};
        set resp.http.Content-Type = "text/plain";
        synthetic("Who are you?" + {"
"});
        return (deliver);
    }
    if (resp.status == 503 && resp.reason == "Maintenance") {
        set resp.http.Content-Type = "text/html";
        set resp.http.Retry-After = "600";
        synthetic({"<h1>Back soon</h1>"});
        return (deliver);
    }
}
