# The case of words that choose counts.
vcl 4.1;

import blob;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.http.x = blob.transcode(base64, HEX, encoded="YQ==");
}
