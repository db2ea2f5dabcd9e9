# A probe is declared before it is used.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .probe = p;
}

probe p {
    .url = "/";
}
