//! Tests of guards between a stranger and protected content: fields that are added here,
//! authenticated connections, rules for paths, and passwords.

use crate::support;

mod client_facts;
mod logins;
mod nominated;
mod passwords;
mod paths;

use support::Stage;
use support::disked::Policy;
use support::folder::Folder;
use testkit::larder::Daemon;
use testkit::origin::ScriptedOrigin;

/// Larder before a scripted origin, with a site of either kind and these keys of the file and the
/// site. A program passes requests below `/pass/` and pipes those below `/pipe/`.
async fn stage(policy: Policy, folder: &Folder, top: &str, site: &str) -> Stage {
    let origin = ScriptedOrigin::start().await.expect("an origin");
    let addr = origin.addr();
    let head =
        format!("listen = \"127.0.0.1:0 h2c\"\nworkers = 1\n{top}\n[[site]]\nhost = \"*\"\n");
    let (host, port) = (addr.ip(), addr.port());
    let own = match policy {
        Policy::Declared => format!("origin = \"http://{addr}\"\n"),
        Policy::Vcl => {
            let program = format!(
                "vcl 4.1;\nbackend app {{ .host = \"{host}\"; .port = \"{port}\"; }}\n\
                 sub vcl_recv {{ set req.http.x-recv = \"set\"; \
                 if (req.url ~ \"^/pipe/\") {{ return (pipe); }} \
                 if (req.url ~ \"^/pass/\") {{ return (pass); }} }}\n\
                 sub vcl_pipe {{ set bereq.http.x-fetch = \"set\"; }}\n\
                 sub vcl_backend_fetch {{ set bereq.http.x-fetch = \"set\"; }}\n\
                 sub vcl_deliver {{ set resp.http.x-deliver = \"set\"; }}\n"
            );
            folder.file("site.vcl", program);
            format!("vcl = \"{}\"\n", folder.path().join("site.vcl").display())
        }
    };
    let daemon = Daemon::start(&format!("{head}{own}{site}\n")).expect("larder starts");
    Stage { origin, daemon }
}
