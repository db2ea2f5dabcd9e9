# What vcl_backend_fetch may return.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_backend_fetch {
    if (now > now + 0s) {
        return (fetch);
    }
    if (now > now + 1s) {
        return (abandon);
    }
    if (now > now + 2s) {
        return (fail);
    }
    if (now > now + 3s) {
        return (error(503, "a"));
    }
    if (now > now + 4s) {
        return (error(503));
    }
    if (now > now + 5s) {
        return (error);
    }
}
