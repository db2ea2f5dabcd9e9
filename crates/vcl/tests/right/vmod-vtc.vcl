# Workspaces are looked at and filled by whoever tests a program; each subroutine names one.
vcl 4.1;
import vtc;
backend default none;
sub vcl_recv {
    if (req.http.X-Test == "overflow") {
        vtc.workspace_overflow(client);
    }
    if (vtc.workspace_free(client) < 1024 || vtc.workspace_overflowed(session)) {
        return (synth(500));
    }
    vtc.workspace_snapshot(client);
    vtc.workspace_alloc(client, -64);
    set req.http.Room = vtc.workspace_reserve(client, size=-8) + vtc.typesize("pii");
    vtc.workspace_reset(client);
    set req.backend_hint = vtc.no_backend();
}
sub vcl_backend_fetch {
    vtc.workspace_alloc(backend, 1000);
    if (bereq.url == "/panic") { vtc.panic("asked for"); }
}
