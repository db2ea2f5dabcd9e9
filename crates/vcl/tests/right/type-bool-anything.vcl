# Truths come from strings and numbers.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.hash_always_miss = "a";
    set req.hash_ignore_busy = 0;
}
