# What vcl_pipe may return.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_pipe {
    if (now > now + 0s) {
        return (pipe);
    }
    if (now > now + 1s) {
        return (synth(404));
    }
    if (now > now + 2s) {
        return (fail);
    }
}
