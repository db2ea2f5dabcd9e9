# A keyed hash has a key and a message.
vcl 4.1;
import digest;
backend default none;
sub vcl_recv {
    set req.http.X = digest.hmac_md5("message");
}
