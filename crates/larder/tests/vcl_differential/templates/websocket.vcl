# A chat: WebSockets and long polls are piped to their own backend, the rest is cached.
vcl 4.1;

backend web {
    .host = "127.0.0.1";
    .port = "${o1}";
}
backend chat {
    .host = "127.0.0.1";
    .port = "${o2}";
    .first_byte_timeout = 10s;
}

sub vcl_recv {
    if (req.url ~ "^/socket\.io/") {
        set req.backend_hint = chat;
        if (req.http.Upgrade ~ "(?i)websocket") {
            return (pipe);
        }
        return (pass);
    }
    if (req.http.Upgrade) {
        return (synth(426, "Not here"));
    }
}

sub vcl_pipe {
    if (req.http.Upgrade) {
        set bereq.http.Upgrade = req.http.Upgrade;
        set bereq.http.Connection = req.http.Connection;
    }
    set bereq.http.X-Real-IP = client.ip;
}

sub vcl_synth {
    if (resp.status == 426) {
        set resp.http.Upgrade = "websocket";
        set resp.http.Connection = "Upgrade";
        synthetic("Ask /socket.io/");
        return (deliver);
    }
}
