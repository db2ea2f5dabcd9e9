# A fault in an included file.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

include "./parts/fault.vcl";
