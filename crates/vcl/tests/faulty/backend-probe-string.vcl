# A probe is a name.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .probe = "p";
}
