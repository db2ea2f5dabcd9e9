# Words of enumerations.
vcl 4.1;

import blob;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.http.A = blob.transcode(encoding = BASE64, encoded = "a");
    set req.http.B = blob.encode(HEX, LOWER, blob.decode(encoded = "b"));
}
