# A subroutine called at two places, wrong at one.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub mine {
    set req.http.X = "a";
}

sub vcl_recv {
    call mine;
}

sub vcl_backend_fetch {
    call mine;
}
