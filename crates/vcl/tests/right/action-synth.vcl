# What vcl_synth may return.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_synth {
    if (now > now + 0s) {
        return (deliver);
    }
    if (now > now + 1s) {
        return (restart);
    }
    if (now > now + 2s) {
        return (fail);
    }
}
