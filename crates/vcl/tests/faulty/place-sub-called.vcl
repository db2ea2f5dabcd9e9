# A subroutine that is called where its variable is not.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub mine {
    set beresp.ttl = 5s;
}

sub vcl_recv {
    call mine;
}
