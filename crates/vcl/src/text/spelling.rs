//! Spelling of numbers, addresses and blobs, byte for byte as in Varnish.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::failure::ProgramFailure;
use crate::text::codec;

/// Largest INT, and least one when negated: numbers have fifteen digits.
pub const INT_MAX: i64 = 999_999_999_999_999;
/// Largest REAL that can be printed, and least one when negated.
pub const REAL_MAX: f64 = 999_999_999_999.999;

/// Appends a blob: base64 between colons.
pub fn append_blob(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b':');
    out.extend(codec::encode("BASE64", false, bytes));
    out.push(b':');
}

/// Appends an INT.
///
/// # Errors
/// If it has more than fifteen digits.
pub fn append_int(n: i64, out: &mut Vec<u8>) -> Result<(), ProgramFailure> {
    if !(-INT_MAX..=INT_MAX).contains(&n) {
        return Err(ProgramFailure::new(format!("INT overflow converting to string ({n:X})")));
    }
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
    Ok(())
}

/// Appends a REAL or the seconds of a DURATION, with three digits after the point.
///
/// # Errors
/// If it has more than twelve digits before the point, or is not finite.
pub fn append_real(n: f64, out: &mut Vec<u8>) -> Result<(), ProgramFailure> {
    if n.is_nan() || n.abs() > REAL_MAX {
        // As in C, an exponent has a sign and at least two digits.
        let exponent = if n == 0.0 || !n.is_finite() { 0 } else { n.abs().log10().floor() as i32 };
        let shown = n / 10_f64.powi(exponent);
        return Err(ProgramFailure::new(format!(
            "REAL overflow converting to string ({shown:.6}e{exponent:+03})"
        )));
    }
    write(out, format_args!("{n:.3}"));
    Ok(())
}

/// Appends an address as the C library writes it.
pub fn append_ip(addr: IpAddr, out: &mut Vec<u8>) {
    match addr {
        IpAddr::V6(addr) => match (addr.to_ipv4_mapped(), compatible(addr)) {
            (Some(v4), _) => write(out, format_args!("{v4}")),
            (None, Some(v4)) => write(out, format_args!("::{v4}")),
            (None, None) => write(out, format_args!("{addr}")),
        },
        IpAddr::V4(addr) => write(out, format_args!("{addr}")),
    }
}

/// The IPv4 address of `::a.b.c.d`, if the address is printed in this form.
fn compatible(addr: Ipv6Addr) -> Option<Ipv4Addr> {
    let [0, 0, 0, 0, 0, 0, high, low] = addr.segments() else { return None };
    (high != 0).then(|| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
}

/// Appends formatted text.
pub(super) fn write(out: &mut Vec<u8>, what: std::fmt::Arguments<'_>) {
    out.write_fmt(what).expect("memory takes every write");
}
