# What can be done in vcl_deliver.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_deliver {
    set resp.http.X = obj.hits + obj.ttl + obj.uncacheable + req.http.Y;
    set resp.status = 200;
    set resp.reason = "OK";
    set resp.filters = "gunzip";
    set resp.do_esi = false;
    unset resp.http.Via;
}
