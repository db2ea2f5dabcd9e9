# Lines stand side by side.
vcl 4.1;

probe p {
    .request = "GET / HTTP/1.1" + "Host: x";
}

backend default {
    .host = "127.0.0.1";
    .probe = p;
}
