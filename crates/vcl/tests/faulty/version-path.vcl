# A socket is of VCL 4.1.
vcl 4.0;

backend default {
    .path = "/run/web.sock";
}
