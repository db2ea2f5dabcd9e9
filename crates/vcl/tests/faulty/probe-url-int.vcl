# A URL is a string.
vcl 4.1;

probe p {
    .url = 5;
}

backend default {
    .host = "127.0.0.1";
    .probe = p;
}
