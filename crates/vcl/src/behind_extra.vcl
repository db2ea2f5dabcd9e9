# What stands behind a program beside a site's settings, in the place of the builtin VCL: where a
# vcl_* does not return, the step that the settings declare goes on.

vcl 4.0;

sub vcl_recv { return (hash); }
sub vcl_pipe { return (pipe); }
sub vcl_pass { return (fetch); }
sub vcl_hash { return (lookup); }
sub vcl_purge { return (synth(200, "Purged")); }
sub vcl_hit { return (deliver); }
sub vcl_miss { return (fetch); }
sub vcl_deliver { return (deliver); }
sub vcl_synth { return (deliver); }
sub vcl_backend_fetch { return (fetch); }
sub vcl_backend_refresh { return (merge); }
sub vcl_backend_response { return (deliver); }
sub vcl_backend_error { return (deliver); }
sub vcl_init { return (ok); }
sub vcl_fini { return (ok); }
