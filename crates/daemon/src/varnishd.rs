//! varnishd's flags: the programs, storages and parameters that they name, and the configuration
//! made from them.

use std::path::{Path, PathBuf};

use base::Limits;
use config::{Config, Varnishd, VolumeFlag};
use vcl::params::{Param, Params};

use crate::config_file::render;
use crate::guard::Guard;

/// The file of the generated secret, beside the admin socket, as varnishd calls it.
pub(crate) const SECRET: &str = "_.secret";

/// The values of varnishd's flags.
#[derive(Clone, Debug)]
pub struct Flags {
    /// Certificates of `-A`, each file with that of its key.
    pub certificates: Vec<(PathBuf, PathBuf)>,
    /// Programs to load: name, and file or text.
    pub programs: Vec<(String, ProgramFlag)>,
    /// Storages, in the flags' order.
    pub storages: Vec<Storage>,
    /// Parameters as the flags set them.
    pub params: Params,
    /// Parameters that the CLI must not change.
    pub read_only: Vec<String>,
    /// `-i`.
    pub identity: Option<String>,
    /// `-I`.
    pub commands: Option<PathBuf>,
    /// `-M`.
    pub reverse_cli: Option<String>,
    /// `-a`, each.
    pub endpoints: Vec<String>,
    /// `-T`, each.
    pub cli: Vec<String>,
    /// `-S`, or the generated secret.
    pub secret: Option<PathBuf>,
}

/// A program to load.
#[derive(Clone, Debug)]
pub enum ProgramFlag {
    /// A file by its name.
    File(String),
    /// Its source.
    Text(String),
}

/// A storage of the flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// Its name.
    pub name: String,
    /// Bytes; `None` without a bound of its own.
    pub bytes: Option<u64>,
    /// The directory of a disk storage; `None` for memory.
    pub disk: Option<PathBuf>,
}

impl Storage {
    /// The volume of a disk storage.
    fn volume(&self) -> Option<VolumeFlag> {
        let (name, path) = (self.name.clone(), self.disk.clone()?);
        Some(VolumeFlag { name, path, bytes: self.bytes.unwrap_or_default() })
    }
}

impl Flags {
    /// The guard of a CLI that `-M` connects.
    ///
    /// # Errors
    /// The secret cannot be read.
    pub(crate) fn guard(&self) -> std::io::Result<Guard> {
        match &self.secret {
            None => Ok(Guard::Open),
            Some(path) => crate::keeper::read(path).map(|secret| Guard::Secret(secret.into())),
        }
    }

    /// The configuration made from the flags.
    ///
    /// # Errors
    /// The flags that cannot be used, rendered.
    pub fn config(&self) -> Result<Config, String> {
        let in_memory = self.storages.iter().filter(|storage| storage.disk.is_none());
        let sizes: Vec<_> = in_memory.filter_map(|storage| storage.bytes).collect();
        if sizes.len() > 1 {
            let all = base::units::Bytes(sizes.iter().sum());
            base::tell!(
                Notice,
                "larder: note: -s: {} storages are names for one memory of {all}; none has a part \
                 of its own",
                sizes.len()
            );
        }
        let mut limits = Limits::default();
        apply_parameters(&self.params, &mut limits, true);
        let options = Varnishd {
            listen: self.endpoints.clone(),
            certificates: self.certificates.clone(),
            cli: self.cli.clone(),
            commands: self.commands.is_some() || self.reverse_cli.is_some(),
            secret: self.secret.clone(),
            disks: self.storages.iter().filter_map(Storage::volume).collect(),
            memory_bytes: (!sizes.is_empty()).then(|| sizes.iter().sum()),
            http2: self.params.has_feature("http2"),
            limits,
        };
        config::from_varnishd(&options).map_err(|problems| render(&problems))
    }
}

/// Applies parameters to the corresponding limits; defaults too with `all`.
pub(crate) fn apply_parameters(params: &Params, limits: &mut Limits, all: bool) {
    let counts = |param: Param| {
        let spec = vcl::params::TABLE.iter().find(|spec| spec.param == param);
        all || spec.is_some_and(|spec| !params.is_default(spec))
    };
    let ms = |param: Param| (params.seconds(param) * 1000.0).round() as u64;
    // As SO_SNDTIMEO takes a zero (socket(7)).
    let for_ever = |ms: u64| if ms == 0 { u64::MAX >> 1 } else { ms };
    let rules: [(Param, &mut u64, u64); 14] = [
        (Param::TimeoutIdle, &mut limits.idle_timeout, ms(Param::TimeoutIdle)),
        // A connection is idle until a whole head has arrived.
        (Param::TimeoutIdle, &mut limits.header_timeout, ms(Param::TimeoutIdle)),
        (Param::IdleSendTimeout, &mut limits.send_timeout, for_ever(ms(Param::IdleSendTimeout))),
        (Param::SendTimeout, &mut limits.response_time, ms(Param::SendTimeout)),
        (Param::PipeTimeout, &mut limits.tunnel_idle_timeout, ms(Param::PipeTimeout)),
        (Param::HttpReqSize, &mut limits.header_bytes, params.number(Param::HttpReqSize)),
        // The request line may take all of it.
        (Param::HttpReqSize, &mut limits.target_bytes, params.number(Param::HttpReqSize)),
        (Param::HttpReqHdrLen, &mut limits.header_field_bytes, params.number(Param::HttpReqHdrLen)),
        (
            Param::HttpRespSize,
            &mut limits.response_header_bytes,
            params.number(Param::HttpRespSize),
        ),
        (
            Param::HttpRespHdrLen,
            &mut limits.response_field_bytes,
            params.number(Param::HttpRespHdrLen),
        ),
        (Param::HttpMaxHdr, &mut limits.header_count, fields(params.number(Param::HttpMaxHdr))),
        (
            Param::H2MaxConcurrentStreams,
            &mut limits.h2_streams,
            params.number(Param::H2MaxConcurrentStreams).clamp(1, 1000),
        ),
        (
            Param::WorkspaceClient,
            &mut limits.vcl_workspace_client,
            params.number(Param::WorkspaceClient),
        ),
        (
            Param::WorkspaceBackend,
            &mut limits.vcl_workspace_backend,
            params.number(Param::WorkspaceBackend),
        ),
    ];
    for (param, limit, value) in rules {
        if counts(param) {
            *limit = value;
        }
    }
    if counts(Param::CliLimit) {
        let cli_limit = params.number(Param::CliLimit);
        limits.varnish_cli_bytes = limits.varnish_cli_bytes.max(cli_limit);
    }
    let pipes = params.number(Param::PipeSessMax);
    if pipes > 0 {
        limits.tunnels = pipes;
    }
    if all {
        // Storage bounds what is stored, and a fetch has no overall deadline.
        limits.object_bytes = u64::MAX >> 1;
        limits.total_timeout = u64::MAX >> 1;
        limits.body_buffer_bytes = limits.body_buffer_bytes.min(limits.header_bytes);
    }
}

/// Fields of a head of so many lines: varnishd counts the first line as five.
fn fields(lines: u64) -> u64 {
    const FIRST_LINE: u64 = 5;
    lines.saturating_sub(FIRST_LINE)
}

/// The generated secret, for want of `-S`: in a file that only its owner can read, beside the admin
/// socket.
///
/// # Errors
/// The reason why it cannot be written.
pub fn own_secret(admin_socket: &Path) -> Result<PathBuf, String> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let folder = admin_socket.parent().unwrap_or_else(|| Path::new("."));
    let path = folder.join(SECRET);
    let failed = |error: std::io::Error| format!("larder: {}: {error}", path.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut bytes = [0_u8; 32];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| failed(error.into()))?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    // The secret of an earlier daemon is out of use.
    _ = std::fs::remove_file(&path);
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
    writeln!(file, "{text}").map_err(failed)?;
    base::tell!(Info, "larder: the CLI's secret is in {}", path.display());
    Ok(path)
}
