# Replacements.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.url = regsub(req.url, "^/([^/]+)/(.*)$", "/\2/\1\0");
    set req.url = regsuball(req.url, "&?utm_[a-z]+=[^&]*", "");
    set req.http.X = regsub(regsuball(req.url, "a", req.http.Y), "b", "\\");
}
