//! Larder in front of a FastCGI application, with the application's root on disk.

use testkit::client::{RawClient, WriteSplit, request};
use testkit::fastcgi::{Application, ApplicationScript};
use testkit::larder::Daemon;
use testkit::reply::Reply;

use super::folder::Folder;
use super::{PATIENCE, whole};

/// The head of a page of the application.
const CACHEABLE: &str = "Content-Type: text/html\r\nCache-Control: max-age=300\r\n\r\n";

pub(crate) struct Stage {
    pub(crate) app: Application,
    pub(crate) daemon: Daemon,
    pub(crate) root: Folder,
}

impl Stage {
    /// Starts both; `origin` and `site` are further settings. The root contains only the front
    /// controller.
    pub(crate) async fn start(origin: &str, site: &str) -> Self {
        let app = Application::start().await.expect("a port for the application");
        app.otherwise(ApplicationScript::answer(format!("{CACHEABLE}by the application")));
        let root = Folder::new();
        root.file("index.php", "<?php SECRET");
        let daemon = Daemon::start(&format!(
            "listen = \"127.0.0.1:0\"\nworkers = 1\n[[origin]]\nname = \"php\"\n\
             servers = \"fastcgi://{}\"\nroot = \"{}\"\n{origin}\n\
             [[site]]\nhost = \"*\"\norigin = \"php\"\n{site}\n",
            app.addr(),
            root.path().display(),
        ));
        Self { app, daemon: daemon.expect("larder starts"), root }
    }

    pub(crate) async fn ask(&self, method: &str, target: &str, fields: &str) -> Reply {
        let raw = RawClient::connect(self.daemon.addr()).await.expect("a connection");
        let mut raw = raw.patience(PATIENCE);
        raw.send(&request(method, target, fields), WriteSplit::Whole).await.expect("taken");
        whole(raw.reply(method).await, target)
    }

    pub(crate) async fn get(&self, target: &str) -> Reply {
        self.ask("GET", target, "").await
    }
}
