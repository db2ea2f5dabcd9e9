# What vcl_backend_error may return.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_backend_error {
    if (now > now + 0s) {
        return (deliver);
    }
    if (now > now + 1s) {
        return (retry);
    }
    if (now > now + 2s) {
        return (abandon);
    }
    if (now > now + 3s) {
        return (fail);
    }
}
