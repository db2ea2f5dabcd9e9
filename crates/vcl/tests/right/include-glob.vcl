# Files by a pattern.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

include +glob "./parts/r*.vcl";
