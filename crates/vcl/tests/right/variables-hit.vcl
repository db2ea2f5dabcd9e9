# What can be read in vcl_hit.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_hit {
    set req.http.X = obj.ttl + obj.age + obj.grace + obj.keep + obj.hits + obj.status + obj.reason + obj.proto + obj.http.ETag;
}
