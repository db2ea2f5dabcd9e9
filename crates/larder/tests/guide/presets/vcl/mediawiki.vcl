# The rules of MediaWiki's manual for Varnish, written anew, for the test of the preset.
vcl 4.1;

backend default { .host = "127.0.0.1"; .port = "ORIGIN"; }

sub vcl_recv {
    if (req.method == "PURGE") { return (purge); }
    if (req.method != "GET" && req.method != "HEAD") { return (pass); }
    if (req.http.Authorization || req.http.Cookie ~ "([sS]ession|Token)=") { return (pass); }
    # No session: no cookie counts.
    unset req.http.Cookie;
    return (hash);
}
