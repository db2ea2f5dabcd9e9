# Two objects of one name.
vcl 4.1;

import directors;

backend default {
    .host = "127.0.0.1";
}

sub vcl_init {
    new d = directors.round_robin();
    new d = directors.fallback();
    d.add_backend(default);
}

sub vcl_recv {
    set req.backend_hint = d.backend();
}
