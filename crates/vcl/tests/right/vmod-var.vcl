# Variables.
vcl 4.1;

import var;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    var.set("a", "b");
    set req.http.X = var.get("a");
    var.set_int("n", 5);
    var.global_set("g", "x");
    var.clear();
}
