# Where a purge is wrong is seen when it runs.
vcl 4.1;

import purge;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.http.X = purge.hard();
}
