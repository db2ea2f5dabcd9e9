# What vcl_hit may return.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_hit {
    if (now > now + 0s) {
        return (deliver);
    }
    if (now > now + 1s) {
        return (pass);
    }
    if (now > now + 2s) {
        return (restart);
    }
    if (now > now + 3s) {
        return (synth(404));
    }
    if (now > now + 4s) {
        return (fail);
    }
}
