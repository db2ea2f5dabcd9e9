//! The certificates of Varnish's CLI: those of varnishd's `-A`, and those loaded by commands. A
//! change is staged first; a commit puts all staged changes in force.
//!
//! Only a commit, or re-read files, may change what handshakes present. A bad file changes nothing.

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::units::Bytes;
use base::{Limit, Limits};
use config::PairFiles;
use tls::{CertificateKeyPair, Choice, MaterialError};

use crate::account::Runner;
use crate::keeper::{self, OpenPurpose};

/// Longest id in bytes: it is one word in lists.
const ID_MAX: usize = 255;

/// The certificates, in the order of their loading.
#[derive(Clone, Debug, Default)]
pub(crate) struct CliCertificates {
    all: Vec<CliCertificate>,
    /// The number of the next generated id.
    next: u64,
}

/// A certificate.
#[derive(Clone, Debug)]
pub(crate) struct CliCertificate {
    pub(crate) order: CertificateDefinition,
    pub(crate) pair: Arc<CertificateKeyPair>,
    pub(crate) stage: CertificateStage,
    /// The certificate comes from `-A`.
    is_given: bool,
}

/// The stages of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CertificateStage {
    /// The next commit activates it.
    Staged,
    /// It is presented to clients.
    Active,
    /// It is presented until the next commit.
    Discarded,
}

impl CertificateStage {
    /// The name of the stage in lists, as in Varnish.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Staged => "staged",
            Self::Active => "active",
            Self::Discarded => "discard",
        }
    }
}

/// The definition of a certificate to load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CertificateDefinition {
    /// The id; an empty one is generated.
    pub(crate) id: String,
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
    /// The only TLS listener that presents it, if one was named.
    pub(crate) frontend: Option<String>,
    /// The certificate is for clients that send no name, or a name without a certificate.
    pub(crate) is_default: bool,
}

/// The reason why a change is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CertificateRefusal {
    why: String,
    /// The limit that was reached, if one was.
    pub(crate) limit: Option<Limit>,
}

impl CertificateRefusal {
    pub(crate) fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), limit: None }
    }
}

impl fmt::Display for CertificateRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl CliCertificates {
    /// The certificates of `-A`, all active.
    pub(crate) fn given<'a>(
        pairs: impl Iterator<Item = (&'a PairFiles, Arc<CertificateKeyPair>)>,
    ) -> Self {
        let mut cli_certificates = Self::default();
        for (files, pair) in pairs {
            cli_certificates.give(files.cert.clone(), files.key.clone(), pair);
        }
        cli_certificates
    }

    fn give(&mut self, cert: PathBuf, key: PathBuf, pair: Arc<CertificateKeyPair>) {
        let order = CertificateDefinition {
            id: self.new_id(),
            cert,
            key,
            ..CertificateDefinition::default()
        };
        self.all.push(CliCertificate {
            order,
            pair,
            stage: CertificateStage::Active,
            is_given: true,
        });
    }

    pub(crate) fn all(&self) -> &[CliCertificate] {
        &self.all
    }

    /// The certificates that handshakes present now.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &CliCertificate> {
        self.all.iter().filter(|own| own.stage != CertificateStage::Staged)
    }

    /// Returns true if handshakes present the same certificates with `other`.
    pub(crate) fn shows_as(&self, other: &Self) -> bool {
        let of = |cli_certificates: &Self| {
            let shown =
                cli_certificates.shown().map(|own| (Arc::as_ptr(&own.pair), own.order.is_default));
            shown.collect::<Vec<_>>()
        };
        of(self) == of(other)
    }

    /// The assignment of certificates to names. The default is the last that was loaded as such, or
    /// the last of `-A`; without those, and if `needs_default`, it is the first.
    pub(crate) fn choice(&self, needs_default: bool) -> Choice {
        let shown: Vec<_> = self.shown().collect();
        let last = |is: fn(&CliCertificate) -> bool| shown.iter().rposition(|own| is(own));
        let default = last(|own| own.order.is_default).or_else(|| last(|own| own.is_given));
        let first = || (needs_default && !shown.is_empty()).then_some(0);
        let default = default.or_else(first);
        let pairs: Vec<_> = shown.iter().map(|own| Arc::clone(&own.pair)).collect();
        Choice::among(&pairs, default)
    }

    /// Stages a certificate and returns its id.
    ///
    /// # Errors
    /// The id is in use or invalid, or the limit is reached.
    pub(crate) fn stage(
        &mut self,
        mut order: CertificateDefinition,
        pair: Arc<CertificateKeyPair>,
        limits: &Limits,
    ) -> Result<String, CertificateRefusal> {
        if order.id.is_empty() {
            order.id = self.new_id();
        }
        let id = order.id.clone();
        let is_word = !id.contains(|c: char| c.is_whitespace() || c.is_control());
        if !is_word || id.len() > ID_MAX {
            let why = format!("an id is a word of at most {ID_MAX} bytes, without blanks");
            return Err(CertificateRefusal::because(why));
        }
        if self.find(&id).is_some() {
            return Err(CertificateRefusal::because(format!("Id: \"{id}\" already exists")));
        }
        let most = limits.varnish_cli_certificates;
        if self.all.iter().filter(|own| !own.is_given).count() as u64 >= most {
            return Err(CertificateRefusal {
                why: format!("{most} certificates are loaded, and no more may be"),
                limit: Some(Limit::VarnishCliCertificates),
            });
        }
        self.all.push(CliCertificate {
            order,
            pair,
            stage: CertificateStage::Staged,
            is_given: false,
        });
        Ok(id)
    }

    /// Marks a certificate to be removed by the next commit; a staged one is removed at once.
    ///
    /// # Errors
    /// No certificate has this id.
    pub(crate) fn discard(&mut self, id: &str) -> Result<(), CertificateRefusal> {
        let at = self.find(id).ok_or_else(|| CertificateRefusal::because("ID not found"))?;
        match self.all[at].stage {
            CertificateStage::Staged => _ = self.all.remove(at),
            CertificateStage::Active | CertificateStage::Discarded => {
                self.all[at].stage = CertificateStage::Discarded;
            }
        }
        Ok(())
    }

    /// Puts the staged changes in force.
    pub(crate) fn commit(&mut self) {
        self.all.retain(|own| own.stage != CertificateStage::Discarded);
        self.all.iter_mut().for_each(|own| own.stage = CertificateStage::Active);
    }

    /// Drops the staged changes.
    pub(crate) fn roll_back(&mut self) {
        self.all.retain(|own| own.stage != CertificateStage::Staged);
        self.all.iter_mut().for_each(|own| own.stage = CertificateStage::Active);
    }

    /// Reads every certificate again.
    ///
    /// # Errors
    /// Changes are staged, or a file cannot be used: then nothing has changed.
    pub(crate) fn read_again(&mut self, limits: &Limits) -> Result<(), CertificateRefusal> {
        if self.all.iter().any(|own| own.stage != CertificateStage::Active) {
            return Err(CertificateRefusal::because(
                "There are staged changes: tls.cert.commit or tls.cert.rollback comes first",
            ));
        }
        let read = |own: &CliCertificate| {
            let pair = read_pair(&own.order.cert, &own.order.key, limits)?;
            // An outdated certificate that was active all the time is no reason to reject the
            // others.
            if pair.leaf() != own.pair.leaf() {
                is_valid(&own.order.cert, &pair)?;
            }
            pair.keep_staple_of(&own.pair);
            Ok(Arc::new(pair))
        };
        let pairs = self.all.iter().map(read).collect::<Result<Vec<_>, CertificateRefusal>>()?;
        self.all.iter_mut().zip(pairs).for_each(|(own, pair)| own.pair = pair);
        Ok(())
    }

    /// Carries over the certificates of `before`, with those of `-A` as just read.
    pub(crate) fn go_on_with(&mut self, before: &Self) {
        let given = std::mem::replace(self, before.clone());
        given
            .all
            .into_iter()
            .for_each(|own| self.take_up(&own.order.cert, &own.order.key, &own.pair));
    }

    /// Replaces the certificate of `-A` that is in these files.
    pub(crate) fn take_up(&mut self, cert: &Path, key: &Path, pair: &Arc<CertificateKeyPair>) {
        let is_it = |own: &&mut CliCertificate| {
            own.is_given && own.order.cert == *cert && own.order.key == *key
        };
        self.all.iter_mut().filter(is_it).for_each(|own| own.pair = Arc::clone(pair));
    }

    fn find(&self, id: &str) -> Option<usize> {
        self.all.iter().position(|own| own.order.id == id)
    }

    /// Generates an id that is not in use, in Varnish's form.
    fn new_id(&mut self) -> String {
        loop {
            let id = format!("cert{}", self.next);
            self.next += 1;
            if self.find(&id).is_none() {
                return id;
            }
        }
    }
}

/// Reads a certificate before its first use.
///
/// # Errors
/// The file that cannot be used, and the reason.
pub(crate) fn read_new(
    order: &CertificateDefinition,
    limits: &Limits,
) -> Result<Arc<CertificateKeyPair>, CertificateRefusal> {
    let pair = read_pair(&order.cert, &order.key, limits)?;
    is_valid(&order.cert, &pair)?;
    Ok(Arc::new(pair))
}

fn read_pair(
    cert: &Path,
    key: &Path,
    limits: &Limits,
) -> Result<CertificateKeyPair, CertificateRefusal> {
    let chain = read_file(cert, limits.varnish_cli_certificate_bytes)?;
    let key_pem = match key == cert {
        true => chain.clone(),
        false => read_file(key, limits.varnish_cli_certificate_bytes)?,
    };
    CertificateKeyPair::parse(&chain, &key_pem).map_err(|error| {
        let file = match error {
            MaterialError::NoKey | MaterialError::Key(_) | MaterialError::Mismatch => key,
            _ => cert,
        };
        CertificateRefusal::because(format!("{}: {error}", file.display()))
    })
}

fn is_valid(file: &Path, pair: &CertificateKeyPair) -> Result<(), CertificateRefusal> {
    match pair.not_after() < rt::now().unix_secs() {
        true => Err(CertificateRefusal::because(format!(
            "{}: the certificate has expired",
            file.display()
        ))),
        false => Ok(()),
    }
}

/// The bytes of a file, read with the rights of this process, or through the keeper.
fn read_file(path: &Path, bytes_max: u64) -> Result<Vec<u8>, CertificateRefusal> {
    let failed = |error: io::Error| CertificateRefusal::because(unread(path, &error));
    // Opening a pipe would wait for its writer.
    if !keeper::metadata(path).map_err(failed)?.is_file() {
        return Err(CertificateRefusal::because(format!("{}: it is no file", path.display())));
    }
    let mut bytes = Vec::new();
    let file = keeper::open(path, OpenPurpose::Read).map_err(failed)?;
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > bytes_max {
        let most = Bytes(bytes_max);
        return Err(CertificateRefusal {
            why: format!("{}: it has more than {most}", path.display()),
            limit: Some(Limit::VarnishCliCertificateBytes),
        });
    }
    Ok(bytes)
}

/// The message about a file that was not read; for a lack of permission it names the user.
fn unread(path: &Path, error: &io::Error) -> String {
    let text = format!("{}: {error}", path.display());
    let runner = Runner::own().filter(|_| error.kind() == io::ErrorKind::PermissionDenied);
    match runner {
        Some(runner) => format!("{text}: larder runs as the user `{}`", runner.name),
        None => text,
    }
}

#[cfg(test)]
mod tests;
