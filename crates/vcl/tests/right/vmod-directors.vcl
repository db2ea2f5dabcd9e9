# Directors of all kinds.
vcl 4.1;

import directors;

backend default {
    .host = "127.0.0.1";
}

backend two {
    .host = "127.0.0.2";
}

sub vcl_init {
    new a = directors.round_robin();
    a.add_backend(default);
    a.add_backend(two);
    new b = directors.random();
    b.add_backend(default, 2.5);
    b.add_backend(two, 1);
    new c = directors.fallback(sticky = true);
    c.add_backend(a.backend());
    new d = directors.hash();
    d.add_backend(two, 1);
    new e = directors.shard();
    e.add_backend(two);
    e.reconfigure();
}

sub vcl_recv {
    set req.backend_hint = a.backend();
    set req.backend_hint = b.backend();
    set req.backend_hint = c.backend();
    set req.backend_hint = d.backend(req.url);
    set req.backend_hint = e.backend(by = KEY, key = e.key(req.url));
}
