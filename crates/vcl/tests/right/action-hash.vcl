# What vcl_hash may return.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_hash {
    if (now > now + 0s) {
        return (lookup);
    }
    if (now > now + 1s) {
        return (fail);
    }
}
