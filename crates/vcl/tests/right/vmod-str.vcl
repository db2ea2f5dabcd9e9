# Strings.
vcl 4.1;

import str;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (str.startswith(req.url, "/a")) {
        set req.http.X = str.split(req.url, 1, "/");
    }
}
