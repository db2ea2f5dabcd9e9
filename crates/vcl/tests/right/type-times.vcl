# Reckoning with times.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (now - 5s < now && now + 1h > now) {
        set req.http.X = now - now;
        set req.http.Y = now + 5;
    }
}
