//! Keyring of the secrets of session tickets (RFC 5077, RFC 8446 4.6.1), with their rotation.
//!
//! A secret encrypts tickets for six hours, and decrypts them for six more. Daemons may share
//! secrets ([`TicketKeys::take`]), so that one resumes another's sessions. Different client
//! verifications derive different keys from a secret, so that a ticket never bypasses one.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustls::pki_types::UnixTime;
use rustls::server::ProducesTickets;

use crate::auth::ClientAuth;
use crate::error::MaterialError;
use crypto::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use crypto::hkdf::{HKDF_SHA256, KeyType, Salt};
use crypto::{SEALING, fill};

/// The time for which a secret encrypts tickets, in seconds: as in rustls.
const YOUNG_SECS: u64 = 6 * 3_600;
/// Seconds for which a secret decrypts tickets.
const LIFE_SECS: u64 = 2 * YOUNG_SECS;
/// Seconds for which a daemon waits for a shared secret before it makes its own.
const LEEWAY_SECS: u64 = 900;
/// The most secrets at a time: two that are shared, and some of times without contact.
const SECRETS_MAX: usize = 8;
/// Bytes of a secret.
const SECRET: usize = 32;
/// Size of a stored secret: with its time in front.
const WRITTEN: usize = 8 + SECRET;
/// Size of a key's name, which precedes a ticket.
const NAME: usize = 16;

/// A secret, and its time.
#[derive(Clone, PartialEq, Eq)]
struct TicketSecret {
    /// The time of its creation, in seconds since 1970.
    made_secs: u64,
    secret: [u8; SECRET],
}

impl TicketSecret {
    fn draw(now_secs: u64) -> Result<Self, MaterialError> {
        let mut secret = [0; SECRET];
        let failed = |_| MaterialError::Key("the random source fails".to_owned());
        fill(&mut secret).map_err(failed)?;
        Ok(Self { made_secs: now_secs, secret })
    }

    fn age_secs(&self, now_secs: u64) -> u64 {
        now_secs.saturating_sub(self.made_secs)
    }
}

/// Secrets in the order of use: the first encrypts tickets, all decrypt them.
type Secrets = Vec<TicketSecret>;

/// Error for bytes that are not ticket secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTicketKeys;

impl fmt::Display for NoTicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("they are no ticket keys of now")
    }
}

impl std::error::Error for NoTicketKeys {}

/// The secrets of a daemon's tickets.
pub struct TicketKeys {
    secrets: ArcSwap<Secrets>,
    /// Serialises changes.
    changing: Mutex<()>,
    /// Another daemon makes the next secret.
    is_led: AtomicBool,
}

impl fmt::Debug for TicketKeys {
    /// Does not show the secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TicketKeys").field(&self.secrets.load().len()).finish()
    }
}

impl TicketKeys {
    /// A new secret of this daemon.
    ///
    /// # Errors
    /// If the random source fails.
    pub fn new() -> Result<Arc<Self>, MaterialError> {
        Self::made_at(now_secs())
    }

    fn made_at(now_secs: u64) -> Result<Arc<Self>, MaterialError> {
        let secrets = ArcSwap::from_pointee(vec![TicketSecret::draw(now_secs)?]);
        Ok(Arc::new(Self { secrets, changing: Mutex::default(), is_led: AtomicBool::default() }))
    }

    /// Leaves the next secret to other daemons, unless they are late.
    pub fn be_led(&self) {
        self.is_led.store(true, Ordering::Relaxed);
    }

    /// The secrets as bytes, for other daemons' [`TicketKeys::take`].
    pub fn encode(&self) -> Vec<u8> {
        encode(&self.secrets.load())
    }

    /// The successor of the shared bytes `shared`, with a new secret in front; `None` if the
    /// present one is still in use.
    ///
    /// # Errors
    /// If `shared` are not secrets.
    pub fn succeed(shared: &[u8], now_secs: u64) -> Result<Option<Vec<u8>>, NoTicketKeys> {
        let mut secrets = decode(shared, now_secs)?;
        if secrets.first().is_some_and(|first| first.age_secs(now_secs) <= YOUNG_SECS) {
            return Ok(None);
        }
        secrets.insert(0, TicketSecret::draw(now_secs).map_err(|_| NoTicketKeys)?);
        tidy(&mut secrets, now_secs);
        Ok(Some(encode(&secrets)))
    }

    /// Encrypts tickets with the first of `shared` from now on. Earlier secrets still decrypt.
    /// Returns true if anything changed.
    ///
    /// # Errors
    /// If they are not secrets; nothing has changed then.
    pub fn take(&self, shared: &[u8], now_secs: u64) -> Result<bool, NoTicketKeys> {
        let mut next = decode(shared, now_secs)?;
        let _changing = self.changing.lock();
        let before = self.secrets.load_full();
        let own = before.iter().filter(|own| next.iter().all(|one| one.secret != own.secret));
        let own: Secrets = own.cloned().collect();
        next.extend(own);
        tidy(&mut next, now_secs);
        let is_new = *before != next;
        if is_new {
            self.secrets.store(Arc::new(next));
        }
        Ok(is_new)
    }

    /// Seconds since the creation of the secret that encrypts tickets.
    pub fn age_secs(&self, now_secs: u64) -> u64 {
        self.secrets.load().first().map_or(0, |first| first.age_secs(now_secs))
    }

    /// Returns true if the secret that encrypts tickets must be replaced.
    pub fn is_old(&self, now_secs: u64) -> bool {
        self.age_secs(now_secs) > YOUNG_SECS
    }

    /// Makes a new secret, if it is time.
    fn roll(&self, now_secs: u64) {
        let leeway = if self.is_led.load(Ordering::Relaxed) { LEEWAY_SECS } else { 0 };
        let is_due = || self.age_secs(now_secs) > YOUNG_SECS + leeway;
        if !is_due() {
            return;
        }
        let _changing = self.changing.lock();
        // The old secret is used until the random source works again.
        if let (true, Ok(secret)) = (is_due(), TicketSecret::draw(now_secs)) {
            let mut next = Secrets::clone(&self.secrets.load());
            next.insert(0, secret);
            tidy(&mut next, now_secs);
            self.secrets.store(Arc::new(next));
        }
    }

    /// The ticketer for clients that `auth` verifies. Nodes of a roster have their own secrets,
    /// which end with the process.
    ///
    /// # Errors
    /// If the random source fails.
    pub(crate) fn ticketer(
        self: &Arc<Self>,
        auth: Option<&ClientAuth>,
    ) -> Result<Arc<dyn ProducesTickets>, MaterialError> {
        let (keys, of) = match auth.map(ClientAuth::digest) {
            None => (Arc::clone(self), Vec::new()),
            Some(Some(digest)) => (Arc::clone(self), digest.to_vec()),
            Some(None) => (Self::new()?, Vec::new()),
        };
        let made = ArcSwap::from_pointee(DerivedKeys { from: Arc::default(), keys: Vec::new() });
        Ok(Arc::new(Maker { keys, of, made }))
    }
}

/// Removes expired secrets, and those beyond the limit; the first stays.
fn tidy(secrets: &mut Secrets, now_secs: u64) {
    let mut is_first = true;
    secrets.retain(|own| std::mem::take(&mut is_first) || own.age_secs(now_secs) <= LIFE_SECS);
    secrets.truncate(SECRETS_MAX);
}

fn encode(secrets: &Secrets) -> Vec<u8> {
    secrets
        .iter()
        .flat_map(|own| [&own.made_secs.to_be_bytes(), &own.secret[..]].concat())
        .collect()
}

/// The secrets in `bytes`; at least one, and none that lasts longer than a new one, except for
/// clock skew.
fn decode(bytes: &[u8], now_secs: u64) -> Result<Secrets, NoTicketKeys> {
    let (whole, rest) = bytes.as_chunks::<WRITTEN>();
    let secrets: Secrets = whole
        .iter()
        .map(|written| {
            let (made, bytes) = written.split_at(8);
            let (mut made_secs, mut secret) = ([0; 8], [0; SECRET]);
            made_secs.copy_from_slice(made);
            secret.copy_from_slice(bytes);
            TicketSecret { made_secs: u64::from_be_bytes(made_secs), secret }
        })
        .collect();
    let is_of_now = |own: &TicketSecret| own.made_secs <= now_secs.saturating_add(YOUNG_SECS);
    let is_good = rest.is_empty()
        && (1..=SECRETS_MAX).contains(&secrets.len())
        && secrets.iter().all(is_of_now);
    if is_good { Ok(secrets) } else { Err(NoTicketKeys) }
}

/// Encrypts and decrypts tickets.
struct Maker {
    keys: Arc<TicketKeys>,
    /// The digest of the client verification.
    of: Vec<u8>,
    made: ArcSwap<DerivedKeys>,
}

/// Keys derived from secrets.
struct DerivedKeys {
    from: Arc<Secrets>,
    keys: Vec<TicketKey>,
}

struct TicketKey {
    made_secs: u64,
    name: [u8; NAME],
    key: LessSafeKey,
}

impl fmt::Debug for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Maker").field(&self.keys).finish()
    }
}

impl Maker {
    /// The keys of the present secrets.
    fn made(&self, now_secs: u64) -> Arc<DerivedKeys> {
        self.keys.roll(now_secs);
        let (made, secrets) = (self.made.load_full(), self.keys.secrets.load_full());
        if Arc::ptr_eq(&made.from, &secrets) {
            return made;
        }
        let keys = secrets.iter().filter_map(|secret| TicketKey::new(secret, &self.of)).collect();
        let made = Arc::new(DerivedKeys { from: secrets, keys });
        self.made.store(Arc::clone(&made));
        made
    }

    fn encrypt_at(&self, plain: &[u8], now_secs: u64) -> Option<Vec<u8>> {
        let made = self.made(now_secs);
        let key = made.keys.first()?;
        let mut nonce = [0; NONCE_LEN];
        fill(&mut nonce).ok()?;
        let mut ticket = [&key.name[..], &nonce, plain].concat();
        let (head, sealed) = ticket.split_at_mut(NAME + NONCE_LEN);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let (aad, key) = (Aad::from(&head[..NAME]), &key.key);
        let tag = key.seal_in_place_separate_tag(nonce, aad, sealed).ok()?;
        ticket.extend_from_slice(tag.as_ref());
        Some(ticket)
    }

    fn decrypt_at(&self, ticket: &[u8], now_secs: u64) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_at_checked(NAME)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_LEN)?;
        let made = self.made(now_secs);
        let is_it = |key: &&TicketKey| {
            key.name == *name && now_secs.saturating_sub(key.made_secs) <= LIFE_SECS
        };
        let key = made.keys.iter().find(is_it)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let plain = key.key.open_in_place(nonce, Aad::from(name), &mut sealed).ok()?.len();
        sealed.truncate(plain);
        Some(sealed)
    }
}

impl ProducesTickets for Maker {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        u32::try_from(LIFE_SECS).unwrap_or(u32::MAX)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.encrypt_at(plain, now_secs())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.decrypt_at(ticket, now_secs())
    }
}

/// A number of bytes to derive.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

impl TicketKey {
    fn new(secret: &TicketSecret, of: &[u8]) -> Option<Self> {
        let from = Salt::new(HKDF_SHA256, b"larder tickets").extract(&secret.secret);
        let derive = |what: &[u8], bytes: &mut [u8]| {
            let info = [what, of];
            from.expand(&info, Length(bytes.len())).and_then(|okm| okm.fill(bytes)).ok()
        };
        let (mut name, mut key) = ([0; NAME], [0; SECRET]);
        derive(b"name ", &mut name)?;
        derive(b"seal ", &mut key)?;
        let key = LessSafeKey::new(UnboundKey::new(&SEALING, &key).ok()?);
        Some(Self { made_secs: secret.made_secs, name, key })
    }
}

fn now_secs() -> u64 {
    UnixTime::now().as_secs()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: u64 = 1_700_000_000;

    fn maker(keys: &Arc<TicketKeys>) -> Maker {
        let made = ArcSwap::from_pointee(DerivedKeys { from: Arc::default(), keys: Vec::new() });
        Maker { keys: Arc::clone(keys), of: Vec::new(), made }
    }

    fn keys() -> Arc<TicketKeys> {
        TicketKeys::made_at(NOW).expect("random bytes")
    }

    #[test]
    fn a_ticket_is_opened_for_twelve_hours_and_made_with_one_secret_for_six() {
        let keys = keys();
        let maker = maker(&keys);
        let first = maker.encrypt_at(b"one", NOW).expect("a ticket");
        let second = maker.encrypt_at(b"two", NOW + YOUNG_SECS).expect("a ticket");
        assert_eq!(first[..NAME], second[..NAME]);
        let third = maker.encrypt_at(b"three", NOW + YOUNG_SECS + 1).expect("a ticket");
        assert_ne!(first[..NAME], third[..NAME]);
        let open = |ticket: &[u8], secs| maker.decrypt_at(ticket, NOW + secs);
        assert_eq!(open(&first, LIFE_SECS).as_deref(), Some(&b"one"[..]));
        assert_eq!(open(&third, LIFE_SECS).as_deref(), Some(&b"three"[..]));
        assert_eq!(open(&first, LIFE_SECS + 1), None);
        assert_eq!(open(&third, LIFE_SECS + 1).as_deref(), Some(&b"three"[..]));
    }

    #[test]
    fn whoever_has_taken_the_secrets_opens_the_others_tickets_and_its_own_of_before() {
        let (one, two) = (keys(), keys());
        let (first, second) = (maker(&one), maker(&two));
        let (of_one, of_two) = (first.encrypt_at(b"1", NOW), second.encrypt_at(b"2", NOW));
        let (of_one, of_two) = (of_one.expect("a ticket"), of_two.expect("a ticket"));
        assert_eq!(second.decrypt_at(&of_one, NOW), None);
        assert_eq!(two.take(&one.encode(), NOW), Ok(true));
        assert_eq!(two.take(&one.encode(), NOW), Ok(false));
        assert_eq!(second.decrypt_at(&of_one, NOW).as_deref(), Some(&b"1"[..]));
        assert_eq!(second.decrypt_at(&of_two, NOW).as_deref(), Some(&b"2"[..]));
        let made = second.encrypt_at(b"3", NOW).expect("a ticket");
        assert_eq!(first.decrypt_at(&made, NOW).as_deref(), Some(&b"3"[..]));
    }

    #[test]
    fn the_next_shared_secret_comes_when_it_is_time_and_who_waits_in_vain_makes_its_own() {
        let (one, two) = (keys(), keys());
        two.be_led();
        let shared = one.encode();
        assert_eq!(two.take(&shared, NOW), Ok(true));
        assert_eq!(TicketKeys::succeed(&shared, NOW + YOUNG_SECS), Ok(None));
        let late = NOW + YOUNG_SECS + 1;
        let next = TicketKeys::succeed(&shared, late).expect("keys").expect("it is time");
        assert_eq!(next.len(), 2 * WRITTEN);
        assert!(next.ends_with(&shared));
        let second = maker(&two);
        let before = second.encrypt_at(b"x", late).expect("a ticket");
        assert_eq!(two.age_secs(late), YOUNG_SECS + 1, "it is led");
        let later = late + LEEWAY_SECS;
        let own = second.encrypt_at(b"y", later).expect("a ticket");
        assert_eq!(two.age_secs(later), 0, "no shared secret came");
        assert_eq!(two.take(&next, later), Ok(true));
        assert_eq!(two.age_secs(later), LEEWAY_SECS, "they are back");
        for (ticket, plain) in [(before, b"x"), (own, b"y")] {
            assert_eq!(second.decrypt_at(&ticket, later).as_deref(), Some(&plain[..]));
        }
    }

    #[test]
    fn sites_that_check_clients_in_another_way_open_nothing() {
        let keys = keys();
        let (plain, other) = (maker(&keys), Maker { of: vec![1], ..maker(&keys) });
        let ticket = plain.encrypt_at(b"x", NOW).expect("a ticket");
        assert_eq!(other.decrypt_at(&ticket, NOW), None);
        assert_eq!(plain.decrypt_at(&ticket, NOW).as_deref(), Some(&b"x"[..]));
    }

    #[test]
    fn what_is_no_secret_of_now_changes_nothing() {
        let keys = keys();
        let before = keys.encode();
        let future = TicketKeys::made_at(NOW + LIFE_SECS).expect("random bytes").encode();
        for wrong in [&[][..], &before[1..], &future, &before.repeat(SECRETS_MAX + 1)] {
            assert_eq!(keys.take(wrong, NOW), Err(NoTicketKeys));
            assert_eq!(TicketKeys::succeed(wrong, NOW), Err(NoTicketKeys));
        }
        assert_eq!(keys.encode(), before);
        assert!(!format!("{keys:?}").contains(", "), "nothing of a secret is shown");
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_or_refused_and_bounded(
            bytes in prop::collection::vec(any::<u8>(), 0..WRITTEN * 10),
            now in 0..u64::MAX,
        ) {
            let keys = keys();
            let taken = keys.take(&bytes, now);
            prop_assert!(keys.secrets.load().len() <= SECRETS_MAX);
            prop_assert!(taken.is_ok() || keys.encode().len() == WRITTEN);
            _ = maker(&keys).encrypt_at(b"x", now);
        }

        #[test]
        fn a_ticket_that_was_changed_is_not_opened(
            plain in prop::collection::vec(any::<u8>(), 0..300),
            at in any::<prop::sample::Index>(),
            flip in 1_u8..,
        ) {
            let maker = maker(&keys());
            let mut ticket = maker.encrypt_at(&plain, NOW).expect("a ticket");
            prop_assert_eq!(maker.decrypt_at(&ticket, NOW), Some(plain));
            let at = at.index(ticket.len());
            ticket[at] ^= flip;
            prop_assert_eq!(maker.decrypt_at(&ticket, NOW), None);
            prop_assert_eq!(maker.decrypt_at(&ticket[..at], NOW), None);
        }
    }
}
