# An object before it is made.
vcl 4.1;

import directors;

backend default {
    .host = "127.0.0.1";
}

sub vcl_init {
    d.add_backend(default);
    new d = directors.round_robin();
}

sub vcl_recv {
    set req.backend_hint = d.backend();
}
