# There is no keyed hash with SHA-512.
vcl 4.1;
import digest;
backend default none;
sub vcl_recv {
    set req.http.X = digest.hmac_sha512("key", "message");
}
