# The storage that is always there.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_deliver {
    set resp.http.X = storage.Transient.free_space + storage.Transient.used_space + storage.Transient.happy;
}
