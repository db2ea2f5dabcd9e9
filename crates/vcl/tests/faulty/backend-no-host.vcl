# A backend has a host or a path.
vcl 4.1;

backend default {
    .port = "80";
}
