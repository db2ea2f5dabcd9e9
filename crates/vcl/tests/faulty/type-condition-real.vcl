# A real number is no condition.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (1.5) {
        return (pass);
    }
}
