# An interval has a unit.
vcl 4.1;

probe p {
    .interval = 5;
}

backend default {
    .host = "127.0.0.1";
    .probe = p;
}
