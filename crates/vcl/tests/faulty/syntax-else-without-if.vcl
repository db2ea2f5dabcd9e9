# An else without an if.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    else {
        return (pass);
    }
}
