# A duration is compared with a duration.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_backend_response {
    if (beresp.ttl < 120) {
        return (deliver);
    }
}
