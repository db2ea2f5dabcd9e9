# Padding within a BLOB.
vcl 4.1;

import blob;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.http.X = blob.encode(blob=:A=A=:);
}
