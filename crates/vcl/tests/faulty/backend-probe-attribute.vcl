# An unknown attribute of a probe.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .probe = {
        .path = "/";
    }
}
