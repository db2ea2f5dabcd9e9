# What can be a condition.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (req.http.X && req.restarts && req.ttl && req.backend_hint && req.esi_level && "a") {
        return (pass);
    }
}
