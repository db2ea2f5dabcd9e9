//! Tests with a database that has every type of value, queried by programs and by `mmdblookup`.

use std::net::IpAddr;
use std::process::Command;

use bytes::Bytes;

use testkit::geoip::{Datum, database};

use super::*;
use crate::sub::Sub;
use crate::tag::Tag;
use crate::testing::{NOW, RecordingEnvironment, SubroutineFixture, compile};

fn file() -> Vec<u8> {
    let city = Datum::Map(vec![
        (
            "country",
            Datum::Map(vec![
                ("iso_code", Datum::Text("SE")),
                (
                    "names",
                    Datum::Map(vec![("en", Datum::Text("Sweden")), ("fr", Datum::Text("Suède"))]),
                ),
                ("is_in_european_union", Datum::Bool(true)),
            ]),
        ),
        (
            "location",
            Datum::Map(vec![
                ("latitude", Datum::Double(58.4167)),
                ("accuracy_radius", Datum::U16(76)),
            ]),
        ),
        (
            "subdivisions",
            Datum::Array(vec![
                Datum::Map(vec![("iso_code", Datum::Text("E"))]),
                Datum::Map(vec![("iso_code", Datum::Text("F"))]),
            ]),
        ),
        ("geoname_id", Datum::U32(2_661_886)),
        ("large", Datum::U64(u64::MAX)),
        ("larger", Datum::U128(u128::MAX)),
        ("less", Datum::I32(-5)),
        ("half", Datum::Float(0.5)),
        ("raw", Datum::Bytes(b"\x00\xff")),
        ("no", Datum::Bool(false)),
        ("0", Datum::Text("named zero")),
        ("zero", Datum::U32(0)),
    ]);
    let other = Datum::Map(vec![("country", Datum::Map(vec![("iso_code", Datum::Text("DE"))]))]);
    database(&[
        ("192.0.2.0".parse().expect("an address"), 24, city),
        ("2001:db8::".parse().expect("an address"), 32, other),
    ])
}

fn of_file(file: Vec<u8>) -> Database {
    Database::read(file.into()).expect("a database")
}

const ADDRESS: &str = "192.0.2.7";

/// Paths and their values.
const VALUES: &[(&str, &str)] = &[
    ("country/iso_code", "SE"),
    ("/country//iso_code/", "SE"),
    ("country/names/fr", "Suède"),
    ("country/is_in_european_union", "true"),
    ("location/latitude", "58.416700"),
    ("location/accuracy_radius", "76"),
    ("subdivisions/0/iso_code", "E"),
    ("subdivisions/1/iso_code", "F"),
    ("subdivisions/-1/iso_code", "F"),
    ("subdivisions/-2/iso_code", "E"),
    ("geoname_id", "2661886"),
    ("large", "18446744073709551615"),
    ("larger", "340282366920938463463374607431768211455"),
    ("less", "-5"),
    ("half", "0.500000"),
    ("raw", "00ff"),
    ("no", "false"),
    ("0", "named zero"),
    ("zero", "0"),
];

#[test]
fn values_of_every_type_are_strings() {
    let database = of_file(file());
    let ip = ADDRESS.parse().ok();
    for (path, expected) in VALUES {
        let text = database.lookup(path.as_bytes(), ip);
        assert_eq!(text.map_err(|missing| missing.why).as_deref(), Ok(*expected), "{path}");
    }
}

#[test]
fn what_is_not_there_is_no_string_and_the_log_says_why() {
    let database = of_file(file());
    let message = |path: &str, ip: Option<&str>| {
        let ip = ip.map(|ip| ip.parse().expect("an address"));
        let missing = database.lookup(path.as_bytes(), ip).expect_err("there is nothing");
        (missing.tag, missing.why)
    };
    let no_data = |path: &str| (Tag::Debug, format!("no data for this path ({path})"));
    for path in [
        "country/iso",
        "city/names/en",
        "country/iso_code/more",
        "subdivisions/2/iso_code",
        "subdivisions/-3/iso_code",
        "subdivisions/first",
        "geoname_id/0",
    ] {
        assert_eq!(message(path, Some(ADDRESS)), no_data(path));
    }
    for path in ["country", "subdivisions", "/"] {
        let why = format!("no single value for this path ({path})");
        assert_eq!(message(path, Some(ADDRESS)), (Tag::Error, why));
    }
    let long = "x/".repeat(50);
    for path in ["", &long] {
        let why = format!("invalid or missing path ({path})");
        assert_eq!(message(path, Some(ADDRESS)), (Tag::Error, why));
    }
    let why = "no entry for this address (198.51.100.1)".to_owned();
    assert_eq!(message("country/iso_code", Some("198.51.100.1")), (Tag::Debug, why));
    let why = "invalid or missing address".to_owned();
    assert_eq!(message("country/iso_code", None), (Tag::Error, why));
}

const PROGRAM: &str = "vcl 4.1; import geoip2; backend default none;
    sub vcl_init { new db = geoip2.geoip2(\"/db.mmdb\"); }
    sub vcl_recv {
        set req.http.X = db.lookup(\"country/iso_code\", client.ip);
        if (!db.lookup(\"city/names/en\", client.ip)) { set req.http.Y = \"none\"; }
    }";

fn start(file: Option<Vec<u8>>) -> Result<SubroutineFixture, String> {
    let mut environment = RecordingEnvironment::default();
    environment.files.extend(file.map(|file| ("/db.mmdb".to_owned(), Bytes::from(file))));
    let instance = compile(PROGRAM)?.start(&environment, NOW)?;
    let mut fixture = SubroutineFixture::with(instance);
    fixture.environment = environment;
    Ok(fixture)
}

#[test]
fn a_program_asks_for_its_client() {
    let mut fixture = start(Some(file())).expect("the file is right");
    for (ip, country) in [(ADDRESS, Some(&b"SE"[..])), ("2001:db8::1", Some(b"DE")), ("::1", None)]
    {
        fixture.session.client = Some((ip.parse::<IpAddr>().expect("an address"), 1).into());
        fixture.run(Sub::Recv);
        // A header set to an absent string is empty.
        let x = fixture.req.headers.value_named(b"X").filter(|x| !x.is_empty());
        assert_eq!(x, country, "{ip}");
        assert_eq!(fixture.req.headers.value_named(b"Y"), Some(&b"none"[..]));
    }
}

#[test]
fn a_file_that_is_missing_or_broken_keeps_its_program_from_loading() {
    let why = |file| start(file).err().expect("it is refused");
    assert!(why(None).starts_with("vcl_init failed: geoip2.geoip2: /db.mmdb: "), "{}", why(None));
    let whole = file();
    for broken in [&b""[..], b"no database", &whole[..whole.len() / 2], &whole[300..]] {
        let message = why(Some(broken.to_vec()));
        assert!(message.contains("/db.mmdb: invalid database"), "{message}");
    }
}

#[test]
fn a_file_beyond_the_limit_is_refused() {
    let limits = base::Limits { geoip_bytes: 100, ..base::Limits::default() };
    let mut environment = RecordingEnvironment::default();
    environment.shared.set_limits(&limits);
    environment.files.insert("/db.mmdb".to_owned(), Bytes::from(file()));
    let message = compile(PROGRAM).and_then(|program| program.start(&environment, NOW));
    let message = message.expect_err("it is refused");
    assert!(message.ends_with("it has more than 100 bytes (geoip_bytes)"), "{message}");
    assert_eq!(*environment.limits.borrow(), [Limit::GeoipBytes]);
}

#[test]
fn programs_share_equal_databases_and_let_them_go() {
    let mut environment = RecordingEnvironment::default();
    environment.files.insert("/db.mmdb".to_owned(), Bytes::from(file()));
    let program = compile(PROGRAM).expect("it is right");
    let held = || environment.shared.databases.held();
    let two = [(); 2].map(|()| program.start(&environment, NOW).expect("the file is right"));
    assert_eq!(held(), 1);
    drop(two);
    assert_eq!(held(), 0);
}

// `mmdblookup` uses libmaxminddb, as Varnish's VMOD does.
#[test]
fn mmdblookup_finds_the_same() {
    if Command::new("mmdblookup").arg("--version").output().is_err() {
        return eprintln!("skipped: no mmdblookup");
    }
    let path = std::env::temp_dir().join(format!("larder-geoip2-{}.mmdb", std::process::id()));
    std::fs::write(&path, file()).expect("it can be written");
    let mut wrong = Vec::new();
    for (keys, expected) in VALUES {
        let mut command = Command::new("mmdblookup");
        command.arg("--file").arg(&path).args(["--ip", ADDRESS]);
        // After `--`: numbers that count from the end begin with a dash.
        command.arg("--").args(keys.split('/').filter(|key| !key.is_empty()));
        let message = command.output().expect("it starts").stdout;
        let message = String::from_utf8_lossy(&message).into_owned();
        // A value is followed by its type: `"SE" <utf8_string>`.
        let Some((value, kind)) = message.trim().rsplit_once(" <") else {
            wrong.push(format!("{keys}: {message}"));
            continue;
        };
        let value = match kind {
            "boolean>" if value == "true" || value == "1" => "true".to_owned(),
            "boolean>" => "false".to_owned(),
            "bytes>" => value.to_ascii_lowercase(),
            "uint128>" => u128::from_str_radix(value.trim_start_matches("0x"), 16)
                .map_or_else(|_| value.to_owned(), |number| number.to_string()),
            _ => value.trim_matches('"').to_owned(),
        };
        if value != *expected {
            wrong.push(format!("{keys}: {value}, not {expected}"));
        }
    }
    std::fs::remove_file(&path).expect("it is there");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
