# Programs are changed in vcl_recv.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_deliver {
    return (vcl(other));
}
