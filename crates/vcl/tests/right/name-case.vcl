# The case of names does not count, of the language or of one's own.
vcl 4.1;

import std;
import directors;

backend default {
    .host = "127.0.0.1";
}

backend Other none;

acl Friends {
    "192.0.2.0"/24;
}

sub VCL_Init {
    NEW Turns = Directors.ROUND_ROBIN();
    turns.ADD_BACKEND(other);
}

sub Vcl_recv {
    IF (Client.IP ~ FRIENDS) {
        SET Req.HTTP.x-host = REQ.http.Host.LOWER() + REGSUB(req.URL, "a", "b");
        STD.Log("" + NOW + Storage.S0.FREE_SPACE);
        UNSET REQ.http.Cookie;
        CALL Own;
    }
    set req.hash_always_miss = TRUE;
    set req.backend_hint = OTHER;
    set req.backend_hint = Turns.Backend();
    RETURN (hash);
}

sub own {
    set req.backend_hint = DEFAULT;
}

sub vcl_synth {
    Synthetic("x");
}
