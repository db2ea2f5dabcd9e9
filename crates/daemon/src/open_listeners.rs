//! Open listeners: ports, the admin socket and folders, which a daemon started by root opens before
//! it switches its user.
//!
//! All files are read later, as at a reload, by the [`keeper`] where only root may.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use config::Config;
use net::{BindError, BoundListeners, ListenAddress, ListenerSettings};

use crate::account::Account;
use crate::address_holders::{self, Holders};
use crate::api::{self, Console};
use crate::config_file::render;
use crate::keeper::{self, KeeperArgs};
use crate::ports::Ports;
use crate::predecessor::Inheritance;
use crate::source::{ConfigSource, DaemonOptions};
use crate::varnishd::ProgramFlag;
use crate::{config_bundle, hot_list_file, ring, varnishd, vsm};

/// Folders of the daemon itself, as its unit creates them.
const OWN: [&str; 2] = ["/run/larder", "/var/lib/larder"];

/// Ports and listeners that are open.
pub(crate) struct OpenListeners {
    pub(crate) listeners: BoundListeners,
    pub(crate) ports: Ports,
    pub(crate) console: Console,
    /// The log ring's folder.
    pub(crate) ring: PathBuf,
}

/// Opens ports and listeners, or takes them out of `inheritance`, and switches to the configured
/// user. Call within the helper runtime.
///
/// # Errors
/// The message that says what cannot be opened, and the remedy.
pub(crate) fn open(
    source: &DaemonOptions,
    config: &Config,
    listen: &[ListenerSettings],
    workers: usize,
    inheritance: &mut Inheritance,
) -> Result<OpenListeners, String> {
    let account = Account::of(&config.run, &source.user)?;
    let socket = &source.admin_socket;
    let had_folder = socket.parent().is_some_and(Path::exists);
    // First of all: if this is refused, another daemon may use the rest.
    let inherited = &mut inheritance.listeners;
    let listeners = BoundListeners::bind(listen, workers, source.sharing, inherited)
        .map_err(|refused| cannot_listen(&refused))?;
    if let Some(account) = &account {
        give_volumes(account, config)?;
    }
    let console = api::bind(&config.admin, socket, inheritance.admin_socket.take())?;
    let mut ports = Ports::open(config, &mut inheritance.ports);
    if !console.listeners.has_tokens() {
        // Without tokens no client could be admitted.
        ports.admin.clear();
    }
    let named = config.log_ring.as_ref().and_then(|ring| ring.folder.clone());
    let ring = source.log_ring.clone().or(named);
    let ring = ring.unwrap_or_else(|| ring::usual_folder(socket));
    let Some(account) = account else {
        return Ok(OpenListeners { listeners, ports, console, ring });
    };
    if let Some(folder) = socket.parent() {
        match had_folder {
            true => account.give_if_holds_only(folder, &own_names(socket)),
            false => account.give(folder),
        }
    }
    // If another daemon answers, the socket belongs to that one.
    let own_socket = console.listeners.has_socket().then_some(socket.as_path());
    if let Some(socket) = own_socket {
        account.give(socket);
    }
    account.give(&socket.with_file_name(varnishd::SECRET));
    let mut folders = vec![api::tokens_folder(&config.admin)];
    folders.extend(config.acme.as_ref().map(|acme| acme.storage.clone()));
    let sharing = config.cluster.as_ref().filter(|cluster| cluster.shares_configuration);
    folders.extend(sharing.map(|cluster| config_bundle::folder(cluster.storage.as_deref())));
    if config.sites.iter().any(|site| site.warm.rewarm) {
        folders.push(hot_list_file::folder());
    }
    folders.extend(config.log_ring.is_some().then(|| ring.clone()));
    for own in OWN.map(Path::new) {
        if socket.starts_with(own) || folders.iter().any(|folder| folder.starts_with(own)) {
            account.give_folder(own);
        }
    }
    folders.iter().for_each(|folder| account.give_folder(folder));
    config.admin.audit.iter().for_each(|file| account.give(file));
    // Before the switch, or the keeper would have no more rights.
    if source.keeper.is_none()
        && let Err(error) = own_keeper(source, own_socket, &listeners).start()
    {
        keeper::log_unavailable(&error.to_string());
    }
    account.switch_user()?;
    Ok(OpenListeners { listeners, ports, console, ring })
}

/// Names of the daemon's files in the folder of its admin socket.
fn own_names(socket: &Path) -> Vec<&OsStr> {
    socket.file_name().into_iter().chain([varnishd::SECRET, vsm::FOLDER].map(OsStr::new)).collect()
}

/// Gives the folders of the disk cache to the account's user. The daemon logs an unusable folder
/// and runs without that volume.
///
/// # Errors
/// A folder that holds other files.
fn give_volumes(account: &Account, config: &Config) -> Result<(), String> {
    for volume in config.disk.iter().flat_map(|disk| &disk.volumes) {
        let Err(unfit) = account.give_volume(&volume.path) else { continue };
        let told = render(&[unfit.diagnostic(volume, &account.runner.name)]);
        if unfit.is_refused() {
            return Err(told);
        }
        base::tell!(Error, "{told}");
    }
    Ok(())
}

/// The arguments of the keeper, which opens and removes files for a daemon that is no longer root.
/// `socket` is the admin socket, if it is this daemon's own.
fn own_keeper(
    source: &DaemonOptions,
    socket: Option<&Path>,
    listeners: &BoundListeners,
) -> KeeperArgs {
    let (config, files) = match &source.settings {
        ConfigSource::File(path) => (Some(path.clone()), Vec::new()),
        ConfigSource::Flags(_) => (None, Vec::new()),
        ConfigSource::Varnishd(flags) => {
            let file = |program: &ProgramFlag| match program {
                ProgramFlag::File(file) => Some(PathBuf::from(file)),
                ProgramFlag::Text(_) => None,
            };
            let programs = flags.programs.iter().filter_map(|(_, program)| file(program));
            let pairs =
                flags.certificates.iter().flat_map(|(cert, key)| [cert.clone(), key.clone()]);
            let own = flags.secret.iter().chain(&flags.commands).cloned();
            (None, programs.chain(own).chain(pairs).collect())
        }
    };
    let clear = socket.into_iter().chain(source.pid_file.as_deref()).chain(listeners.files());
    KeeperArgs::new(config, files, clear.map(Path::to_owned).collect())
}

/// The message about an address that cannot be bound, with the remedy.
pub(crate) fn cannot_listen(refused: &BindError) -> String {
    let BindError { at, error, sharable } = refused;
    let said = format!("larder: cannot listen: {at}: {error}");
    match (error.kind(), at) {
        (io::ErrorKind::AddrInUse, ListenAddress::Address(address)) => {
            taken(&said, &address_holders::of(*address), *sharable)
        }
        (io::ErrorKind::AddrInUse, ListenAddress::Path(path, _)) => {
            taken(&said, &address_holders::at_path(path), false)
        }
        (io::ErrorKind::PermissionDenied, ListenAddress::Address(address)) => {
            let port = address.port();
            format!(
                "{said}\n  = help: ports below 1024 are root's: start it by its unit (`systemctl \
                 start larder`) or as root, which it does not stay; or give it the capability, \
                 `setcap cap_net_bind_service=+ep` with the program's path; or listen on another \
                 port than {port}, such as 8080"
            )
        }
        _ => said,
    }
}

/// The message for an address that `holders` listen on.
fn taken(said: &str, holders: &Holders, sharable: bool) -> String {
    let (who, see) = match &holders.named {
        Some(who) => (format!(": {who} listens there"), ""),
        None => (String::new(), "as root, `ss -ltnxp` shows who listens there; "),
    };
    let end = match holders.is_larder {
        true => "`larder reload` has that daemon read its configuration again; or end it",
        false => "end it",
    };
    let share = match (sharable, holders.is_larder) {
        (true, true) => {
            "; or take its place without a gap: start this one with --share-port and an \
             --admin-socket of its own, then end the other"
        }
        (true, false) => "; or share its connections with it, which --share-port allows",
        (false, _) => "",
    };
    format!("{said}{who}\n  = help: {see}{end}, or listen elsewhere (`listen`){share}")
}
