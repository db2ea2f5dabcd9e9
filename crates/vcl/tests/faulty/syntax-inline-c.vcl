# Inline C.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    C{
        syslog(LOG_INFO, "hello");
    }C
}
