//! Tests of the CLI's certificates: staged, activated and discarded.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// A folder with certificates.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("larder-shelf-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    /// Writes a self-signed certificate, followed by its key.
    fn write(&self, file: &str, name: &str, is_late: bool) -> PathBuf {
        let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).expect("a name");
        if is_late {
            params.not_before = rcgen::date_time_ymd(2001, 1, 1);
            params.not_after = rcgen::date_time_ymd(2002, 1, 1);
        }
        let key = rcgen::KeyPair::generate().expect("a key");
        let cert = params.self_signed(&key).expect("a certificate");
        self.put(file, &format!("{}{}", cert.pem(), key.serialize_pem()))
    }

    fn put(&self, file: &str, text: &str) -> PathBuf {
        let path = self.0.join(file);
        fs::write(&path, text).expect("written");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

fn order(id: &str, file: &Path) -> CertificateDefinition {
    let (cert, key) = (file.to_owned(), file.to_owned());
    CertificateDefinition { id: id.to_owned(), cert, key, ..CertificateDefinition::default() }
}

impl CliCertificates {
    fn load(&mut self, order: CertificateDefinition) -> Result<String, CertificateRefusal> {
        let limits = Limits { varnish_cli_certificates: 3, ..Limits::default() };
        let pair = read_new(&order, &limits)?;
        self.stage(order, pair, &limits)
    }

    fn rows(&self) -> Vec<(&str, &str)> {
        self.all().iter().map(|own| (own.order.id.as_str(), own.stage.word())).collect()
    }

    /// The name of the certificate that a client gets.
    fn shows(&self, name: &str) -> Option<String> {
        let choice = self.choice(true);
        let domain = match (choice.find)(name.as_bytes()) {
            Some(at) => choice.domains.get(at),
            None => choice.default.as_ref(),
        };
        domain.map(|domain| domain.pairs[0].name().to_owned())
    }
}

#[test]
fn what_is_staged_is_shown_after_a_commit_and_gone_after_a_rollback() {
    let folder = Folder::new();
    let (a, b) = (folder.write("a", "a.test", false), folder.write("b", "b.test", false));
    let mut cli_certificates = CliCertificates::default();
    assert_eq!(cli_certificates.load(order("", &a)), Ok("cert0".to_owned()));
    assert_eq!(
        (cli_certificates.shows("a.test"), cli_certificates.rows()),
        (None, vec![("cert0", "staged")])
    );
    cli_certificates.roll_back();
    assert_eq!(cli_certificates.rows(), []);
    cli_certificates.load(order("one", &a)).expect("a certificate");
    cli_certificates.commit();
    cli_certificates.load(order("two", &b)).expect("a certificate");
    cli_certificates.discard("one").expect("it is there");
    assert_eq!(cli_certificates.rows(), [("one", "discard"), ("two", "staged")]);
    assert_eq!(cli_certificates.shows("b.test"), Some("a.test".to_owned()), "nothing is committed");
    cli_certificates.roll_back();
    assert_eq!(cli_certificates.rows(), [("one", "active")]);
    cli_certificates.load(order("two", &b)).expect("a certificate");
    cli_certificates.discard("one").expect("it is there");
    cli_certificates.commit();
    assert_eq!(cli_certificates.rows(), [("two", "active")]);
    assert_eq!(cli_certificates.shows("a.test"), Some("b.test".to_owned()));
    assert_eq!(cli_certificates.discard("one"), Err(CertificateRefusal::because("ID not found")));
    cli_certificates.load(order("three", &a)).expect("a certificate");
    cli_certificates.discard("three").expect("it is there");
    assert_eq!(cli_certificates.rows(), [("two", "active")], "no client was shown it");
}

#[test]
fn the_default_is_the_last_of_its_kind() {
    let folder = Folder::new();
    let file = |name: &str| folder.write(name, name, false);
    let (a, b, c, d) = (file("a.test"), file("b.test"), file("c.test"), file("d.test"));
    let mut cli_certificates = CliCertificates::default();
    for file in [&a, &b] {
        let pair = read_new(&order("", file), &Limits::default()).expect("a certificate");
        cli_certificates.give(file.clone(), file.clone(), pair);
    }
    assert_eq!(cli_certificates.shows(""), Some("b.test".to_owned()));
    cli_certificates.load(order("c", &c)).expect("a certificate");
    cli_certificates.commit();
    assert_eq!(cli_certificates.shows(""), Some("b.test".to_owned()));
    cli_certificates
        .load(CertificateDefinition { is_default: true, ..order("d", &d) })
        .expect("a certificate");
    assert_eq!(cli_certificates.shows(""), Some("b.test".to_owned()));
    cli_certificates.commit();
    assert_eq!(cli_certificates.shows("nowhere.test"), Some("d.test".to_owned()));
    for (id, next) in [("d", "b.test"), ("cert1", "a.test"), ("cert0", "c.test")] {
        cli_certificates.discard(id).expect("it is there");
        cli_certificates.commit();
        assert_eq!(cli_certificates.shows(""), Some(next.to_owned()), "{id}");
    }
    assert!(cli_certificates.choice(false).default.is_none(), "larder.toml has one");
}

#[test]
fn ids_are_words_of_their_own_and_there_are_only_so_many() {
    let folder = Folder::new();
    let a = folder.write("a", "a.test", false);
    let mut cli_certificates = CliCertificates::default();
    cli_certificates.load(order("cert0", &a)).expect("a certificate");
    assert_eq!(cli_certificates.load(order("", &a)), Ok("cert1".to_owned()));
    let twice = CertificateRefusal::because("Id: \"cert1\" already exists");
    assert_eq!(cli_certificates.load(order("cert1", &a)), Err(twice));
    for id in ["a b", "a\tb", &"x".repeat(256)] {
        assert!(
            cli_certificates.load(order(id, &a)).is_err_and(|refused| refused.limit.is_none()),
            "{id}"
        );
    }
    cli_certificates.load(order("third", &a)).expect("a certificate");
    let full = cli_certificates.load(order("fourth", &a)).expect_err("a limit");
    assert_eq!(full.limit, Some(Limit::VarnishCliCertificates));
}

#[test]
fn a_bad_file_is_named_with_what_is_wrong() {
    let folder = Folder::new();
    let (good, late) =
        (folder.write("good", "a.test", false), folder.write("late", "a.test", true));
    let other = folder.write("other", "b.test", false);
    let (nothing, junk) = (folder.0.join("nothing"), folder.put("junk", "junk"));
    let long = folder.put("long", &"x".repeat(300 << 10));
    let mut cli_certificates = CliCertificates::default();
    cli_certificates.load(order("a", &good)).expect("a certificate");
    cli_certificates.commit();
    let with_key = |key: &Path| CertificateDefinition { key: key.to_owned(), ..order("b", &good) };
    for (order, file, why) in [
        (order("b", &nothing), &nothing, "No such file"),
        (order("b", &junk), &junk, "there is no certificate in it"),
        (order("b", &late), &late, "the certificate has expired"),
        (order("b", &folder.0), &folder.0, "it is no file"),
        (order("b", &long), &long, "it has more than 256KiB"),
        (with_key(&other), &other, "the key does not belong to the certificate"),
        (with_key(&junk), &junk, "there is no private key in it"),
    ] {
        let refused = cli_certificates.load(order).expect_err(why).to_string();
        assert!(refused.starts_with(&format!("{}: {why}", file.display())), "{refused}");
    }
    assert_eq!(cli_certificates.rows(), [("a", "active")]);
}

#[test]
fn files_are_read_again_all_or_none() {
    let folder = Folder::new();
    let (a, b) = (folder.write("a", "a.test", false), folder.write("b", "b.test", false));
    let limits = Limits::default();
    let mut cli_certificates = CliCertificates::default();
    cli_certificates.load(order("a", &a)).expect("a certificate");
    cli_certificates.load(order("b", &b)).expect("a certificate");
    assert!(cli_certificates.read_again(&limits).is_err(), "something is staged");
    cli_certificates.commit();
    folder.write("a", "new.test", false);
    folder.put("b", "junk");
    let refused = cli_certificates.read_again(&limits).expect_err("a bad file").to_string();
    assert!(refused.starts_with(&b.display().to_string()), "{refused}");
    assert_eq!(cli_certificates.shows("a.test"), Some("a.test".to_owned()));
    folder.write("b", "b.test", false);
    cli_certificates.read_again(&limits).expect("good files");
    assert_eq!(cli_certificates.shows("new.test"), Some("new.test".to_owned()));
    assert_eq!(cli_certificates.rows(), [("a", "active"), ("b", "active")]);
}
