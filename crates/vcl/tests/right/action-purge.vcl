# What vcl_purge may return.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_purge {
    if (now > now + 0s) {
        return (synth(200, "Purged"));
    }
    if (now > now + 1s) {
        return (restart);
    }
    if (now > now + 2s) {
        return (fail);
    }
}
