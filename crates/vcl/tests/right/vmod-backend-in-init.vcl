# A backend used in vcl_init only.
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
    a.add_backend(two);
}
