# What can be read in vcl_recv.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.http.X = req.method + req.url + req.proto + req.xid + req.restarts + req.esi_level + req.is_hitmiss + req.is_hitpass + client.ip + server.ip + server.hostname + server.identity + local.ip + local.endpoint + local.socket + remote.ip + sess.xid + req_top.url + req_top.method + req_top.http.host + req_top.proto + req_top.time + req.time + now;
}
