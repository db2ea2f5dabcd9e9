//! Dates in the format of C's `strftime`, for `config timefmt`. Times are UTC, never local.

use message::calendar::CalendarTime;

/// nginx's default format.
pub(crate) const DEFAULT: &[u8] = b"%A, %d-%b-%Y %H:%M:%S %Z";

/// Supported conversions; others stay as they are.
const PARTS: &[u8] = b"%AaBbCdeHhIjMmnpSstuwYyz";

/// A time in a format.
pub(crate) fn formatted(format: Option<&[u8]>, seconds: u64) -> Vec<u8> {
    let moment = CalendarTime::at(i64::try_from(seconds).unwrap_or(i64::MAX));
    let mut out = Vec::new();
    write(&moment, format.unwrap_or(DEFAULT), &mut out);
    out
}

fn write(moment: &CalendarTime, format: &[u8], out: &mut Vec<u8>) {
    let mut rest = format;
    while let Some(at) = memchr::memchr(b'%', rest) {
        out.extend_from_slice(&rest[..at]);
        let Some(letter) = rest.get(at + 1) else {
            rest = &rest[at..];
            break;
        };
        match letter {
            b'c' => write(moment, b"%a %b %e %H:%M:%S %Y", out),
            b'D' | b'x' => write(moment, b"%m/%d/%y", out),
            b'F' => write(moment, b"%Y-%m-%d", out),
            b'R' => write(moment, b"%H:%M", out),
            b'T' | b'X' => write(moment, b"%H:%M:%S", out),
            b'Z' => out.extend_from_slice(b"GMT"),
            letter if PARTS.contains(letter) => {
                out.extend_from_slice(
                    moment.part(char::from(*letter)).unwrap_or_default().as_bytes(),
                );
            }
            _ => out.extend_from_slice(&rest[at..at + 2]),
        }
        rest = &rest[at + 2..];
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_strftime_writes_them() {
        // Made by `date -u -d @... +...`.
        for (seconds, format, text) in [
            (0, "%A, %d-%b-%Y %H:%M:%S %Z", "Thursday, 01-Jan-1970 00:00:00 GMT"),
            (951_782_400, "%F %j %a %u %w", "2000-02-29 060 Tue 2 2"),
            (978_220_800, "%F %j", "2000-12-31 366"),
            (1_735_689_599, "%c|%D|%e|%I %p|%y", "Tue Dec 31 23:59:59 2024|12/31/24|31|11 PM|24"),
            (1_740_787_200, "%B %e %C %s %z", "March  1 20 1740787200 +0000"),
            (43_200, "%I%p %T %R%n%t%%", "12PM 12:00:00 12:00\n\t%"),
            (0, "%q%", "%q%"),
            (0, "%k %l %P %r %\u{e9}", "%k %l %P %r %\u{e9}"),
        ] {
            let found = formatted(Some(format.as_bytes()), seconds);
            assert_eq!(String::from_utf8_lossy(&found), text);
        }
        assert_eq!(formatted(None, 0), b"Thursday, 01-Jan-1970 00:00:00 GMT");
    }

    #[test]
    fn no_time_is_too_late() {
        assert!(!formatted(None, u64::MAX / 2).is_empty());
    }
}
