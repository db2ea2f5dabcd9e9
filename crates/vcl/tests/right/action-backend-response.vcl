# What vcl_backend_response may return.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_backend_response {
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
        return (pass(5s));
    }
    if (now > now + 4s) {
        return (pass);
    }
    if (now > now + 5s) {
        return (fail);
    }
    if (now > now + 6s) {
        return (error(503));
    }
}
