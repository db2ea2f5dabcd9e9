# Throttling.
vcl 4.1;

import vsthrottle;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (vsthrottle.is_denied(client.identity, 10, 5s) || vsthrottle.is_denied("a", 2, 1s, 30s)) {
        return (synth(429, "Too Many Requests"));
    }
}
