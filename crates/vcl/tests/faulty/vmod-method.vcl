# An unknown method.
vcl 4.1;

import directors;

backend default {
    .host = "127.0.0.1";
}

sub vcl_init {
    new d = directors.round_robin();
    d.add(default);
}

sub vcl_recv {
    set req.backend_hint = d.backend();
}
