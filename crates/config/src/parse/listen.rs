//! `listen`, and addresses of the same form elsewhere.

use crate::listen::{self, ListenError, parse_listen};
use crate::model::ListenSpec;
use crate::reader::{Reader, SettingValue, TomlTable};

/// The default listeners.
pub(super) fn usual(top: &TomlTable<'_>) -> Vec<ListenSpec> {
    listen::default_listen(top.item("tls").is_some_and(|tls| tls.key("acme").is_some()))
}

pub(super) fn listen_list(r: &mut Reader, item: &SettingValue<'_>) -> Vec<ListenSpec> {
    let mut specs: Vec<ListenSpec> = Vec::new();
    let texts = r.texts(item);
    if item.each().is_empty() {
        r.error(item.span.clone(), "`listen` names no address").help =
            Some(listen::EXPECTED.to_owned());
    }
    for (text, item) in texts {
        let Some(spec) = one_listen(r, text, &item) else { continue };
        let taken = |s: &ListenSpec| {
            let same_path = match (&s.path, &spec.path) {
                (Some((own, _)), Some((path, _))) => own == path,
                _ => false,
            };
            let same_given = s.given.is_some() && s.given == spec.given;
            let mut addresses = s.addresses.iter();
            addresses.any(|a| a.port() != 0 && spec.addresses.contains(a))
                || same_path
                || same_given
        };
        if specs.iter().any(taken) {
            r.error(item.span, format!("`{text}` is listened on already"));
        } else {
            specs.push(spec);
        }
    }
    specs
}

/// Reports a listener for trusted proxies if none are configured.
pub(super) fn check_proxy_listeners(r: &mut Reader, top: &TomlTable<'_>, listen: &[ListenSpec]) {
    let trusts = top.item("trusted_proxies").is_some_and(|item| !item.each().is_empty());
    if !trusts
        && !r.is_partial
        && let Some(spec) = listen.iter().find(|spec| spec.proxy)
        && let Some(item) = top.item("listen")
    {
        let message = format!("`{}`: no proxy is trusted, so all clients are refused", spec.text);
        r.error(item.span, message).help = Some(
            "name the balancers in front: trusted_proxies = [\"192.0.2.7\", \"10.0.0.0/8\"]"
                .to_owned(),
        );
    }
}

pub(super) fn one_listen(
    r: &mut Reader,
    text: &str,
    item: &SettingValue<'_>,
) -> Option<ListenSpec> {
    let error = match parse_listen(text) {
        Ok(spec) => return Some(spec),
        Err(error) => error,
    };
    let help = match &error {
        ListenError::Later(_) => "HTTP/1.1 over TCP and unix sockets, plain or with `tls`",
        ListenError::Path => "such as \"unix:/run/larder/http.sock mode=660\"",
        _ => listen::EXPECTED,
    };
    r.error(item.span.clone(), format!("`{}`: {error}", item.name)).help = Some(help.to_owned());
    None
}
