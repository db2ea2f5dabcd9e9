# What vcl_recv may return.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (now > now + 0s) {
        return (hash);
    }
    if (now > now + 1s) {
        return (pass);
    }
    if (now > now + 2s) {
        return (pipe);
    }
    if (now > now + 3s) {
        return (synth(404, "a"));
    }
    if (now > now + 4s) {
        return (purge);
    }
    if (now > now + 5s) {
        return (restart);
    }
    if (now > now + 6s) {
        return (fail);
    }
    if (now > now + 7s) {
        return (synth(200));
    }
}
