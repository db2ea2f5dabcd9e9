# An attribute twice.
vcl 4.1;

probe p {
    .url = "/";
    .url = "/a";
}

backend default {
    .host = "127.0.0.1";
    .probe = p;
}
