# Devices by User-Agent, languages and countries by field, and two versions of the front page.
vcl 4.1;

import std;

backend default {
    .host = "127.0.0.1";
    .port = "${o1}";
}

sub detect_device {
    unset req.http.X-UA-Device;
    set req.http.X-UA-Device = "pc";
    if (req.http.Cookie ~ "(?i)X-UA-Device-force") {
        set req.http.X-UA-Device = regsub(req.http.Cookie, "(?i).*X-UA-Device-force=([^;]*);*.*", "\1");
    } else {
        if (req.http.User-Agent ~ "(?i)(ads|google|bing|msn|yandex|baidu|ro|career|seznam|)bot") {
            set req.http.X-UA-Device = "bot";
        } elsif (req.http.User-Agent ~ "(?i)ipad") {
            set req.http.X-UA-Device = "tablet-ipad";
        } elsif (req.http.User-Agent ~ "(?i)ip(hone|od)") {
            set req.http.X-UA-Device = "mobile-iphone";
        } elsif (req.http.User-Agent ~ "(?i)android.*(mobile|mini)") {
            set req.http.X-UA-Device = "mobile-android";
        } elsif (req.http.User-Agent ~ "(?i)android") {
            set req.http.X-UA-Device = "tablet-android";
        }
    }
}

sub choose_language {
    if (req.http.Accept-Language ~ "^(de|fr|nl)") {
        set req.http.X-Language = regsub(req.http.Accept-Language, "^(..).*$", "\1");
    } else {
        set req.http.X-Language = "en";
    }
    if (req.url == "/" && !req.http.Cookie ~ "lang=") {
        return (synth(752, "/" + req.http.X-Language + "/"));
    }
}

sub choose_group {
    if (req.http.Cookie ~ "ab=(a|b)") {
        set req.http.X-Group = regsub(req.http.Cookie, "^.*ab=(a|b).*$", "\1");
    } elsif (std.random(0, 10) < 10.5) {
        # Everyone new, so that tests know what comes.
        set req.http.X-Group = "a";
        set req.http.X-New-Group = "1";
    }
}

sub vcl_recv {
    call detect_device;
    if (req.http.X-Country ~ "^(KP|CU)$") {
        return (synth(451, "Not in " + req.http.X-Country));
    }
    call choose_language;
    if (req.url ~ "^/../landing") {
        call choose_group;
    }
    if (req.http.X-UA-Device ~ "^mobile" && req.url ~ "^/../full/") {
        set req.url = regsub(req.url, "/full/", "/mobile/");
    }
    unset req.http.Cookie;
}

sub vcl_hash {
    hash_data(regsub(req.http.X-UA-Device, "-.*$", ""));
    hash_data(req.http.X-Group);
}

sub vcl_backend_fetch {
    set bereq.http.X-Class = regsub(bereq.http.X-UA-Device, "-.*$", "");
}

sub vcl_backend_response {
    if (beresp.http.Vary) {
        set beresp.http.Vary = beresp.http.Vary + ", X-Language";
    } else {
        set beresp.http.Vary = "X-Language";
    }
}

sub vcl_deliver {
    set resp.http.X-Device = req.http.X-UA-Device;
    if (resp.http.Vary ~ "X-Language") {
        set resp.http.Vary = regsub(resp.http.Vary, "X-Language", "Accept-Language, User-Agent");
    }
    if (req.http.X-New-Group) {
        set resp.http.Set-Cookie = "ab=" + req.http.X-Group + "; path=/";
    }
}

sub vcl_synth {
    if (resp.status == 752) {
        set resp.http.Location = "https://" + req.http.host + resp.reason;
        set resp.status = 302;
        set resp.reason = "Found";
        set resp.http.Vary = "Accept-Language";
        set resp.body = "";
        return (deliver);
    }
}
