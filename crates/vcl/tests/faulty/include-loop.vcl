# A file that includes itself.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

include "./parts/loop.vcl";
