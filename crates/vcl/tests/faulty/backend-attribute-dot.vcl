# An attribute begins with a dot.
vcl 4.1;

backend default {
    host = "127.0.0.1";
}
