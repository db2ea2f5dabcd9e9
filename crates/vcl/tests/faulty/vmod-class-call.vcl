# A class is made with new.
vcl 4.1;

import directors;

backend default {
    .host = "127.0.0.1";
}

sub vcl_init {
    directors.round_robin();
}
