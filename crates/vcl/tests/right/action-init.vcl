# What vcl_init may return.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_init {
    if (now > now + 0s) {
        return (ok);
    }
    if (now > now + 1s) {
        return (fail);
    }
    if (now > now + 2s) {
        return (fail("because"));
    }
}
