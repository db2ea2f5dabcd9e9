# The size of what is taken is an INT, not BYTES.
vcl 4.1;
import vtc;
backend default none;
sub vcl_recv {
    vtc.workspace_alloc(client, 1KB);
}
