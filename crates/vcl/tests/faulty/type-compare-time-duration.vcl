# A time is compared with a time.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (now > 5s) {
        return (pass);
    }
}
