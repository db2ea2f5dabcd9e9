//! A real nginx, to hold Larder against.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use testkit::client::RawClient;

/// Attempts to start a server, because another process may take its port first.
const STARTS: usize = 5;

/// A running nginx.
pub(crate) struct Nginx {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Returns true if it is installed; otherwise reports that.
pub(crate) fn is_here() -> bool {
    let found = Command::new("nginx").arg("-v").stderr(Stdio::null()).status().is_ok();
    if !found {
        eprintln!("skipped: no nginx");
    }
    found
}

impl Nginx {
    /// Starts one whose files are in `folder`, with these lines in `http` and in its one `server`.
    /// `how` is an option of its listener: `ssl`, or empty.
    pub(crate) async fn start(folder: &Path, http: &str, (how, server): (&str, &str)) -> Self {
        for _ in 0..STARTS {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let address = listener.local_addr().expect("an address");
            drop(listener);
            let listen = format!("listen {address} {how};\n{server}");
            let mut child = spawn(folder, http, &listen);
            while child.try_wait().expect("a process").is_none() {
                if RawClient::connect(address).await.is_ok() {
                    return Self { child, address };
                }
                super::pause(20).await;
            }
        }
        let log = std::fs::read_to_string(folder.join("error.log"));
        panic!("nginx does not start: {}", log.unwrap_or_default());
    }
}

fn spawn(folder: &Path, http: &str, server: &str) -> Child {
    let at = folder.display();
    let conf = format!(
        "daemon off;\nmaster_process off;\nworker_processes 1;\npid {at}/pid;\n\
         error_log {at}/error.log;\nevents {{ }}\nhttp {{\n\
         client_body_temp_path {at}/body;\nproxy_temp_path {at}/proxy;\n\
         fastcgi_temp_path {at}/fastcgi;\nuwsgi_temp_path {at}/uwsgi;\n\
         scgi_temp_path {at}/scgi;\n{http}\nserver {{ {server} }} }}\n"
    );
    let file = folder.join("nginx.conf");
    std::fs::write(&file, conf).expect("written");
    let mut command = Command::new("nginx");
    command.arg("-p").arg(folder).arg("-c").arg(&file);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("it starts")
}
