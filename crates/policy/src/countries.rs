//! Countries of addresses, by a database in MaxMind's format (GeoLite2-Country and others). A
//! lookup allocates nothing and reads no file.

use std::fmt;
use std::net::IpAddr;

use maxminddb::{PathElement, Reader};

/// The code of a country in two capitals (ISO 3166-1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CountryCode([u8; 2]);

impl CountryCode {
    /// Reads two letters in any case.
    pub fn parse(text: &str) -> Option<Self> {
        let code: [u8; 2] = text.as_bytes().try_into().ok()?;
        let is_code = code.iter().all(u8::is_ascii_alphabetic);
        is_code.then_some(Self(code.map(|letter| letter.to_ascii_uppercase())))
    }

    /// Its capitals.
    pub fn letters(self) -> [u8; 2] {
        self.0
    }
}

impl fmt::Display for CountryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.0.map(char::from);
        write!(f, "{first}{second}")
    }
}

impl fmt::Debug for CountryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A database in memory.
pub struct Countries(Reader<Vec<u8>>);

impl fmt::Debug for Countries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Countries").field("type", &self.kind()).finish_non_exhaustive()
    }
}

impl Countries {
    /// Reads a database.
    ///
    /// # Errors
    /// The reason why the bytes are no database.
    pub fn read(bytes: Vec<u8>) -> Result<Self, String> {
        Reader::from_source(bytes).map(Self).map_err(|error| error.to_string())
    }

    /// The type of the database, as it says.
    pub fn kind(&self) -> &str {
        &self.0.metadata().database_type
    }

    /// The country of an address; `None` if the database does not know it.
    pub fn of(&self, address: IpAddr) -> Option<CountryCode> {
        const PATH: [PathElement<'_>; 2] =
            [PathElement::Key("country"), PathElement::Key("iso_code")];
        let found = self.0.lookup(address.to_canonical()).ok()?;
        let code: &str = found.decode_path(&PATH).ok()??;
        CountryCode::parse(code)
    }
}

#[cfg(test)]
mod tests {
    use testkit::geoip::{self, Datum};

    use super::*;

    fn countries() -> Countries {
        let of = |code| Datum::Map(vec![("country", Datum::Map(vec![("iso_code", code)]))]);
        let networks = [
            ("192.0.2.0", 24, of(Datum::Text("SE"))),
            ("2001:db8::", 32, of(Datum::Text("DE"))),
            ("198.51.100.0", 24, of(Datum::U32(7))),
            ("203.0.113.0", 24, Datum::Map(vec![("continent", Datum::Text("EU"))])),
        ];
        let networks =
            networks.map(|(ip, bits, datum)| (ip.parse().expect("an address"), bits, datum));
        Countries::read(geoip::database(&networks)).expect("a database")
    }

    #[test]
    fn an_address_has_the_country_that_the_database_says_or_none() {
        let countries = countries();
        let of = |ip: &str| countries.of(ip.parse().expect("an address"));
        for (ip, code) in [
            ("192.0.2.7", "SE"),
            ("::ffff:192.0.2.7", "SE"),
            ("2001:db8::1", "DE"),
            ("198.51.100.1", ""),
            ("203.0.113.1", ""),
            ("127.0.0.1", ""),
            ("::1", ""),
        ] {
            let found = of(ip).map(|code| code.to_string()).unwrap_or_default();
            assert_eq!(found, code, "{ip}");
        }
        assert_eq!(countries.kind(), "Test");
    }

    #[test]
    fn a_lookup_allocates_nothing() {
        let countries = countries();
        let ip = "192.0.2.7".parse().expect("an address");
        let seen = allocation_counter::measure(|| _ = countries.of(ip));
        assert_eq!(seen.count_total, 0);
    }

    #[test]
    fn a_code_is_two_letters_and_other_bytes_are_no_database() {
        assert_eq!(CountryCode::parse("de"), CountryCode::parse("DE"));
        for bad in ["", "D", "DEU", "D1", "\u{e4}"] {
            assert_eq!(CountryCode::parse(bad), None, "{bad}");
        }
        assert!(Countries::read(b"no database".to_vec()).is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_fail(at in 0_usize..400, byte in proptest::num::u8::ANY) {
            let of = Datum::Map(vec![("iso_code", Datum::Text("SE"))]);
            let entry = Datum::Map(vec![("country", of)]);
            let net = "192.0.2.0".parse().expect("an address");
            let mut file = geoip::database(&[(net, 24, entry)]);
            if let Some(place) = file.get_mut(at) {
                *place = byte;
            }
            if let Ok(countries) = Countries::read(file) {
                _ = countries.of("192.0.2.7".parse().expect("an address"));
            }
        }
    }
}
