# Storages can be asked in every subroutine.
vcl 4.1;

import std;

backend default {
    .host = "127.0.0.1";
}

sub vcl_init {
    std.log("" + storage.s0.free_space + storage.s0.used_space + storage.s0.happy);
}

sub vcl_backend_fetch {
    if (storage.Transient.used_space > 10m) {
        return (abandon);
    }
}

sub vcl_fini {
    std.log("" + storage.s0.free_space);
}
