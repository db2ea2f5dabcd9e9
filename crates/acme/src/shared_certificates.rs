//! Shared certificates: those that other daemons ordered are stored, and own ones are shared.
//!
//! A certificate of another daemon is checked like one from the disk, and stored before it is used.
//! An invalid one must never replace a valid one. Without the right to order, a daemon must not
//! order.

use std::cmp::Ordering;
use std::io;
use std::sync::Arc;

use tls::CertificateKeyPair;

use crate::certificate_peers::{CertificatePeers, OrderPermission, SharedEntry, entry};
use crate::challenge_responder::ChallengeResponder;
use crate::renewals::{ASK_MS, HeldCertificate, Name, Renewals, random};
use crate::report::Event;

/// The largest difference between daemons' clocks, in seconds.
const CLOCKS_SECS: u64 = 3_600;

impl Renewals {
    fn certificate_entry(&self, name: &str) -> String {
        entry("certificate", &self.storage.authority(), Some(name))
    }

    /// The name of the account's entry.
    pub(crate) fn account_entry(&self) -> String {
        entry("account", &self.storage.authority(), None)
    }

    /// Stores newer certificates of the others, and shares newer ones from here.
    pub(crate) async fn share(&mut self, answers: &dyn ChallengeResponder) {
        let Some(peers) = self.peers.clone() else { return };
        if peers.read(&self.account_entry()) == SharedEntry::Absent {
            self.show_kept_account().await;
        }
        let names: Vec<_> = self.names.keys().cloned().collect();
        for name in names {
            self.share_one(&*peers, &name, answers).await;
        }
    }

    /// [`Renewals::share`] for one name.
    pub(crate) async fn share_one(
        &mut self,
        peers: &dyn CertificatePeers,
        name: &str,
        answers: &dyn ChallengeResponder,
    ) {
        let at = self.certificate_entry(name);
        let now_secs = rt::now().unix_secs();
        let Some(state) = self.names.get(name) else { return };
        let own = state.held.as_ref().map(|held| Arc::clone(&held.pair));
        let good = own.as_ref().filter(|pair| pair.not_after() > now_secs);
        let pem = match peers.read(&at) {
            SharedEntry::Is(pem) => pem,
            SharedEntry::Absent if good.is_some() => return self.show(peers, name).await,
            SharedEntry::Absent | SharedEntry::Unknown | SharedEntry::Refused => return,
        };
        let theirs = match usable(&pem, name, now_secs) {
            Ok(pair) => pair,
            Err(why) => return peers.refuse(&at, &pem, &why),
        };
        match own.as_ref().map(|own| rank(&theirs).cmp(&rank(own))) {
            None | Some(Ordering::Greater) => self.take(name, theirs, &pem, answers),
            Some(Ordering::Less) if good.is_some() => self.show(peers, name).await,
            Some(_) => {}
        }
    }

    /// Shares the certificate for `name`. A failure has no effect here; it is shared again after
    /// the next change.
    pub(crate) async fn show(&self, peers: &dyn CertificatePeers, name: &str) {
        if let Ok(Some(pem)) = self.storage.read_pem(name) {
            _ = peers.write(&self.certificate_entry(name), &pem).await;
        }
    }

    /// Stores and uses a certificate of another daemon, unless it is the one that the operator has
    /// removed.
    fn take(
        &mut self,
        name: &str,
        pair: CertificateKeyPair,
        pem: &[u8],
        answers: &dyn ChallengeResponder,
    ) {
        let unwanted = self.names.get(name).and_then(|state| state.unwanted.as_deref());
        if unwanted == Some(pair.leaf()) {
            return;
        }
        let kept = self.keep(name, pem);
        let now_ms = rt::now().mono_ms;
        let Some(state) = self.names.get_mut(name) else { return };
        match kept {
            Ok(true) => {
                let not_after = pair.not_after();
                *state =
                    Name::with(HeldCertificate::new(Arc::new(pair), now_ms + random() % ASK_MS));
                answers.note(Event::Taken { name: name.to_owned(), not_after });
            }
            // Another process writes: the next check finds its file, or stores this one.
            Ok(false) => {}
            Err(error) => {
                let why = format!("it cannot be stored: {error}");
                self.tell_waiting(name, &why, answers);
            }
        }
    }

    fn keep(&self, name: &str, pem: &[u8]) -> io::Result<bool> {
        self.storage.prepare()?;
        let Some(_lock) = self.storage.lock()? else { return Ok(false) };
        self.storage.write_certificate(name, pem)?;
        Ok(true)
    }

    /// Takes the right to order; `None` if another daemon holds it or may hold it. False if the
    /// certificate arrived with the right.
    pub(crate) async fn is_to_order(
        &mut self,
        name: &str,
        answers: &dyn ChallengeResponder,
    ) -> Option<bool> {
        let Some(peers) = self.peers.clone() else { return Some(true) };
        let why = match peers.claim().await {
            OrderPermission::Own => {
                self.share_one(&*peers, name, answers).await;
                let held = self.names.get(name).and_then(|state| state.held.as_ref());
                return Some(!held.is_some_and(is_good));
            }
            OrderPermission::Others(node) => format!("{node} orders"),
            OrderPermission::OutOfTouch => {
                "it is not known who orders: the cluster is out of touch".into()
            }
        };
        self.tell_waiting(name, &why, answers);
        None
    }

    /// Reports once why `name` waits.
    fn tell_waiting(&mut self, name: &str, why: &str, answers: &dyn ChallengeResponder) {
        let Some(state) = self.names.get_mut(name) else { return };
        if state.waits_for.as_deref() != Some(why) {
            state.waits_for = Some(why.to_owned());
            answers.note(Event::Waiting { name: name.to_owned(), why: why.to_owned() });
        }
    }

    /// Returns true if no certificate is to be ordered now.
    pub(crate) fn is_done(&self) -> bool {
        self.names.values().all(|name| name.held.as_ref().is_some_and(is_good))
    }
}

/// Returns true for a certificate that is not due for renewal.
fn is_good(held: &HeldCertificate) -> bool {
    held.renew_at_secs > rt::now().unix_secs()
}

/// The rank of a certificate among others for its name. All daemons rank alike.
fn rank(pair: &CertificateKeyPair) -> (u64, u64, &[u8]) {
    (pair.not_before(), pair.not_after(), pair.leaf())
}

/// The certificate in `pem`, if it is valid for `name` now.
fn usable(pem: &[u8], name: &str, now_secs: u64) -> Result<CertificateKeyPair, String> {
    let pair = CertificateKeyPair::parse(pem, pem).map_err(|error| error.to_string())?;
    if !pair.covers(name) {
        return Err("it is for another name".to_owned());
    }
    if pair.not_after() <= now_secs {
        return Err("it has expired".to_owned());
    }
    if pair.not_before() > now_secs.saturating_add(CLOCKS_SECS) {
        return Err("its validity has not begun".to_owned());
    }
    Ok(pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate for a.test with validity between these years, PEM behind its key.
    fn made(from: i32, until: i32) -> String {
        let mut params = rcgen::CertificateParams::new(["a.test".to_owned()]).expect("a good name");
        params.not_before = rcgen::date_time_ymd(from, 1, 1);
        params.not_after = rcgen::date_time_ymd(until, 1, 1);
        let key = rcgen::KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        key.serialize_pem() + &certificate.pem()
    }

    #[test]
    fn what_others_have_is_looked_at_as_a_file_is() {
        let now_secs = 1_700_000_000;
        let good = made(2023, 2024);
        let other = made(2023, 2024);
        let key_of_other = other.split_inclusive("END PRIVATE KEY-----").next().expect("a key");
        let certificate = good.split_once("-----BEGIN CERTIFICATE").expect("a certificate").1;
        let mixed = format!("{key_of_other}\n-----BEGIN CERTIFICATE{certificate}");
        assert!(usable(good.as_bytes(), "a.test", now_secs).is_ok());
        for (pem, name, why) in [
            (good.as_str(), "b.test", "it is for another name"),
            (&made(2021, 2022), "a.test", "it has expired"),
            (&made(2024, 2025), "a.test", "its validity has not begun"),
            (&mixed, "a.test", "the key does not belong to the certificate"),
            ("", "a.test", "there is no certificate in it"),
        ] {
            let refused = usable(pem.as_bytes(), name, now_secs).map(|_| ());
            assert_eq!(refused, Err(why.to_owned()));
        }
    }

    #[test]
    fn of_two_certificates_all_take_the_same() {
        let parse = |pem: String| {
            CertificateKeyPair::parse(pem.as_bytes(), pem.as_bytes()).expect("a pair")
        };
        let (old, new) = (parse(made(2022, 2025)), parse(made(2023, 2024)));
        assert!(rank(&old) < rank(&new), "the one that was made later");
        let twin = parse(made(2023, 2024));
        assert_ne!(rank(&twin), rank(&new), "there is one that is last");
    }
}
