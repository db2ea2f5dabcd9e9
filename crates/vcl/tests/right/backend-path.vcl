# A socket.
vcl 4.1;

backend default {
    .path = "/nonexistent/web.sock";
}
