# A body is not read.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_synth {
    set resp.http.X = resp.body;
}
