# An unknown flag.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

include +all "./parts/recv.vcl";
