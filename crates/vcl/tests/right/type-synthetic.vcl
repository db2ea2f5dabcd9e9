# Synthetic answers.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_synth {
    synthetic("a" + resp.status);
    set resp.body = "b";
    set resp.body += "c";
    return (deliver);
}
