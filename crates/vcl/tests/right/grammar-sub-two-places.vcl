# A subroutine of two places.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub mark {
    if (now > now - 5s) {
        return;
    }
}

sub vcl_recv {
    call mark;
}

sub vcl_backend_fetch {
    call mark;
}
