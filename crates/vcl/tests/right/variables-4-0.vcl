# Variables of VCL 4.0 only.
vcl 4.0;

backend b none;

sub vcl_recv {
    set req.esi = false;
    set req.http.X = client.ip;
}

sub vcl_backend_response {
    set beresp.http.X = beresp.backend.ip;
    set beresp.storage_hint = "Transient";
}
