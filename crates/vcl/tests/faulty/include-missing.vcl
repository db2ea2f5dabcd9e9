# The file is not there.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

include "/nonexistent/file.vcl";
