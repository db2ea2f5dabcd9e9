# A URL or a request, not both.
vcl 4.1;

probe p {
    .url = "/";
    .request = "GET / HTTP/1.1";
}

backend default {
    .host = "127.0.0.1";
    .probe = p;
}
