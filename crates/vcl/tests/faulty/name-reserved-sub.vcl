# Names that begin with vcl_ are reserved.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_mine {
    return;
}

sub vcl_recv {
    call vcl_mine;
}
