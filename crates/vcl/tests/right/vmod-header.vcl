# Headers of several lines.
vcl 4.1;

import header;

backend default {
    .host = "127.0.0.1";
}

sub vcl_backend_response {
    header.append(beresp.http.Set-Cookie, "a=1");
    set beresp.http.X = header.get(beresp.http.Set-Cookie, "a=");
    header.remove(beresp.http.Set-Cookie, "a=");
    header.copy(beresp.http.A, beresp.http.B);
}
