//! Tests of the functions, compared with libmhash and varnishd.

use sha2::{Digest, Sha256};

use super::*;
use crate::sub::{Action, Sub};
use crate::testing::SubroutineFixture;

/// Result of a function; `None` for an absent string.
fn call(name: &str, args: &[Option<&[u8]>]) -> Result<Option<Vec<u8>>, ProgramFailure> {
    let function = FUNCTIONS.iter().find(|function| function.name == name).expect("a function");
    let string = |arg: &Option<&[u8]>| Value::String(arg.map(bytes::Bytes::copy_from_slice));
    let args: Vec<Value> = args.iter().map(string).collect();
    let made = (function.call)(&mut SubroutineFixture::bare().ctx(Sub::Synth), &args)?;
    Ok(made.into_bytes().map(|bytes| bytes.to_vec()))
}

fn text(name: &str, arg: &[u8]) -> Option<String> {
    let made = call(name, &[Some(arg)]).ok()??;
    Some(String::from_utf8_lossy(&made).into_owned())
}

fn from_hex(text: &str) -> Vec<u8> {
    base64::unhex(text.as_bytes())
}

// One SHA-256 over libmhash 0.9.9.9's results for messages of 0 to 520 bytes.
#[test]
fn hashes_are_those_of_libmhash_at_every_length() {
    let message: Vec<u8> = (0..600_u32).map(|at| ((at * 7 + 1) % 255 + 1) as u8).collect();
    let mut wrong = Vec::new();
    for (name, expected) in [
        ("crc32", "b6664b233c47005ed63931c5a96cb5085407dc52f15bd13a2bd778a1e6dc3513"),
        ("md5", "e2a48b75e1ea6a52a6882f237314cf7ba31d9286986d19b0bcb0b428fabc44dd"),
        ("sha1", "1697ed8f1ce9f231b1d4ceb8c6960e35011e091afd1fbd40ee8f49589e693db8"),
        ("haval256", "a86fd329ed0bfd28c503ecb2e2928630bc71b075d3d29ee22d3446b41769e376"),
        ("ripemd160", "e84c552109daa215c6942545966df83659e8c548d93e073cdbbc65898f2510d0"),
        ("tiger", "5a6b5921d5c2516c926f5acb69c58a502a08c805e2733e66b6b51acb32fa20c8"),
        ("gost", "2c541ee63120dd4805ff61cd0f164adde429f646f6c4e6c610dc2ed8a939fcc7"),
        ("crc32b", "0e35f7512fdb9baceaf786a6f4f2b44f562db566fbf24e6bc47c3bd014a0b646"),
        ("haval224", "b1ea42ac8c5398874d34fed1bd37650cc179fbb53a73ba5530e8f4e24def3378"),
        ("haval192", "5067abb8071c6b63ba89e1c3e9d297f0504e972ac2b7b978e733eb5289366ac8"),
        ("haval160", "d8a4283fc951239b869319566ec2ceaef0fb2fb87c934a3970c19297fbec8adf"),
        ("haval128", "f9a4136d219e4d950b1bc225e51a2861a9faae37d52aa48c1df778a25e421d75"),
        ("tiger128", "45d20b8ffa2f8ef27b5719ae10dcfe91e69087981edaaaf7857a61e34516efdc"),
        ("tiger160", "6d648aafb57d94866787b08616fe31216fb24761cedd7f0093b9b214d770239c"),
        ("md4", "ab58fc45fc750e7c5f00458b08a20114e348df2719b1d358e19083f0a4a61e4e"),
        ("sha256", "2ceeedea151f90b0a7e9ed10736b055dfcb3fcd1660b43e99d794748bfd388a2"),
        ("adler32", "202db262921209c32512ee1c65181b291eff9a34e07f9d1eaf26371f0a454d92"),
        ("sha224", "5dda09d244bbf432dc7c420111959c8aed269e18bb9d8f1fb0ae0b0454a10bec"),
        ("sha512", "e75b1a85c64105f7404a07a62886010899e9ffdd6564e75e65d66159abdc26b0"),
        ("sha384", "6ef33675ab28e05b4ca7411e55ab560d06cb9a14cdf3280f0cafc51b99b20c33"),
        ("whirlpool", "0f64835eff0b5c01668f498a80562584ab96f1ffb6f92bb1644db785e8f78f18"),
        ("ripemd128", "949d3c7ed9cdb7db4acbee5386469174287f394b7c0dedd902990393a332613a"),
        ("ripemd256", "6e00ac601321c98087842b30234fbebb17b3c3fde4893faee1ea292eee70fbd4"),
        ("ripemd320", "d7eae0c98cc120648671b6c9dcc0042cdc0d620fe1aae8af962a424108977bf7"),
        ("snefru128", "c2f9450cc84839022b0f214c1bb82290072b51ff97b6c525eb0138b227b5dfc9"),
        ("snefru256", "ad7da7981189738e62cec7a412ce00577414381c85766edb389b37a4ac20f89f"),
        ("md2", "47deb847d956e30d90696b206bc5fa3296237e6db432122eb52dfa532d04be1b"),
    ] {
        let mut all = Sha256::new();
        for length in 0..=520 {
            let hash = text(&format!("hash_{name}"), &message[..length]).expect("a hash");
            all.update(from_hex(&hash));
        }
        if base64::hex("", &all.finalize()) != expected.as_bytes() {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

// Results of Varnish 7.1.1.
#[test]
fn a_keyed_hash_needs_a_key_which_may_be_empty() {
    let hmac = |name: &str, key: Option<&[u8]>, message: Option<&[u8]>| {
        let made = call(name, &[key, message]).expect("it does not fail");
        made.map(|text| String::from_utf8(text).expect("digits"))
    };
    for (name, key, message, expected) in [
        (
            "hmac_sha1",
            Some(&b""[..]),
            Some(&b"a"[..]),
            Some("0x7f984109f39759f3f41dba04f5183741e36f1445"),
        ),
        ("hmac_sha1", Some(b"k"), Some(b"a"), Some("0x40e7d441cadb17b07f050341aa23a6820ed81c8b")),
        ("hmac_md5", Some(b"k"), None, Some("0xcd32bedd46aa63cffa3023f050fc78e3")),
        ("hmac_md5", Some(b"k"), Some(b"a"), Some("0xddcf3d210049e7135f61affae73731cd")),
        (
            "hmac_sha256",
            Some(b""),
            None,
            Some("0xb613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"),
        ),
        ("hmac_sha256", None, Some(b"a"), None),
    ] {
        assert_eq!(hmac(name, key, message).as_deref(), expected, "{name} {key:?} {message:?}");
    }
}

// Results of Varnish 7.1.1; without a result, its process aborts.
#[test]
fn texts_are_decoded_up_to_a_zero_byte() {
    for (text_, standard, url, no_padding) in [
        ("Zg==", Some("f"), Some("f"), None),
        ("Zg", Some("f"), Some("f"), Some("f")),
        ("Z", Some("d"), Some("d"), Some("d")),
        ("Zm!v", None, None, None),
        ("AAAA", Some(""), Some(""), Some("")),
        ("Zm8=Zm8=", Some("fo"), Some("fo"), None),
        ("++//", Some("\u{fffd}\u{fffd}\u{fffd}"), None, None),
        ("--__", None, Some("\u{fffd}\u{fffd}\u{fffd}"), Some("\u{fffd}\u{fffd}\u{fffd}")),
        ("====", Some(""), Some(""), None),
        ("", Some(""), Some(""), Some("")),
    ] {
        let all = ["base64_decode", "base64url_decode", "base64url_nopad_decode"];
        let made = all.map(|name| text(name, text_.as_bytes()));
        let expected = [standard, url, no_padding].map(|text| text.map(str::to_owned));
        assert_eq!(made, expected, "{text_}");
    }
}

// Results of Varnish 7.1.1.
#[test]
fn digits_are_read_as_bytes() {
    for (digits, expected) in [
        ("0xab", "qw=="),
        ("0x", "AA=="),
        ("0xabc", "qw=="),
        ("abc", "qw=="),
        ("0x0xab", "AKs="),
        ("0XAB", "AKs="),
        ("xyzt12", "AAAS"),
        ("0x6", ""),
        ("a", ""),
        ("", ""),
    ] {
        assert_eq!(text("base64_hex", digits.as_bytes()).as_deref(), Some(expected), "{digits}");
    }
    assert_eq!(text("base64url_nopad_hex", b"fbff").as_deref(), Some("-_8"));
    assert_eq!(text("base64url_hex", b"fbff").as_deref(), Some("-_8="));
}

#[test]
fn strings_are_encoded_in_three_ways() {
    for (name, expected) in
        [("base64", "++8+Pw=="), ("base64url", "--8-Pw=="), ("base64url_nopad", "--8-Pw")]
    {
        assert_eq!(text(name, b"\xfb\xef>?").as_deref(), Some(expected));
        assert_eq!(call(name, &[None]).ok(), Some(Some(Vec::new())));
    }
    assert_eq!(call("version", &[]).ok().flatten().as_deref(), Some(&b"1.0.2"[..]));
}

#[test]
fn what_is_made_takes_workspace() {
    let program = "vcl 4.1; import digest; backend b none;
        sub vcl_recv { set req.http.X = digest.hash_sha512(req.url); }";
    let mut fixture = SubroutineFixture::of(program).unwrap_or_else(|why| panic!("{why}"));
    fixture.task.workspace = crate::workspace::Workspace::of(127);
    assert!(matches!(fixture.run(Sub::Recv), Action::Fail(why) if &*why == "Workspace overflow"));
}
