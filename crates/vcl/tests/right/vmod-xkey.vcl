# Purges by key.
vcl 4.1;

import xkey;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (req.method == "PURGE") {
        set req.http.n = xkey.purge(req.http.key);
        return (synth(200, "Purged " + req.http.n));
    }
    set req.http.n = xkey.softpurge("a b");
}
