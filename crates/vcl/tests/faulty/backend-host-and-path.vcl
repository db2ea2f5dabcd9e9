# A host or a path, not both.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .path = "/run/web.sock";
}
