# Objects are made in vcl_init.
vcl 4.1;

import directors;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    new d = directors.round_robin();
}
