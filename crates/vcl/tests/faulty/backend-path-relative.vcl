# A path is absolute.
vcl 4.1;

backend default {
    .path = "run/web.sock";
}
