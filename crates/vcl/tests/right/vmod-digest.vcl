# Hashes, keyed hashes and base 64, of strings and of what becomes one.
vcl 4.1;
import blob;
import digest;
backend default none;
sub vcl_recv {
    if (digest.hmac_sha256("key", req.http.Data) != req.http.Signature) { return (synth(401)); }
    set req.http.Id = digest.hash_md5(req.url) + digest.hash_crc32b(req.restarts) + digest.hash_snefru256(client.ip);
    set req.http.Text = digest.base64url_nopad_decode(digest.base64url_nopad(req.http.Data + now));
    set req.http.Hex = digest.base64_hex("0x" + digest.hash_whirlpool("")) + digest.version();
    set req.http.Blob = digest.hash_sha256(blob.decode(HEX, encoded="ff"));
}
