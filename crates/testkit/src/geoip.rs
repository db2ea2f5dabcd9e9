//! Writer of small databases of addresses for tests, by MaxMind's description of the format
//! (version 2.0): an IPv6 tree with records of 24 bits, IPv4 below `::/96`.

use std::net::IpAddr;

/// A value of a database.
#[derive(Clone, Debug)]
pub enum Datum {
    /// A text.
    Text(&'static str),
    /// A number of 64 bits.
    Double(f64),
    /// A number of 32 bits.
    Float(f32),
    /// Bytes.
    Bytes(&'static [u8]),
    /// A whole number of up to 16 bits.
    U16(u16),
    /// A whole number of up to 32 bits.
    U32(u32),
    /// A whole number of up to 64 bits.
    U64(u64),
    /// A whole number of up to 128 bits.
    U128(u128),
    /// A whole number with a sign.
    I32(i32),
    /// A truth value.
    Bool(bool),
    /// Values with names.
    Map(Vec<(&'static str, Self)>),
    /// Values.
    Array(Vec<Self>),
}

impl Datum {
    fn write(&self, out: &mut Vec<u8>) {
        // Numbers without leading zeros.
        let number = |out: &mut Vec<u8>, kind, bytes: &[u8]| {
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            control(out, kind, bytes.len() - zeros);
            out.extend_from_slice(&bytes[zeros..]);
        };
        match self {
            Self::Text(text) => {
                control(out, 2, text.len());
                out.extend_from_slice(text.as_bytes());
            }
            Self::Double(number) => {
                control(out, 3, 8);
                out.extend_from_slice(&number.to_be_bytes());
            }
            Self::Bytes(bytes) => {
                control(out, 4, bytes.len());
                out.extend_from_slice(bytes);
            }
            Self::U16(n) => number(out, 5, &n.to_be_bytes()),
            Self::U32(n) => number(out, 6, &n.to_be_bytes()),
            Self::Map(entries) => {
                control(out, 7, entries.len());
                for (name, item) in entries {
                    Self::Text(name).write(out);
                    item.write(out);
                }
            }
            Self::I32(n) => {
                control(out, 8, 4);
                out.extend_from_slice(&n.to_be_bytes());
            }
            Self::U64(n) => number(out, 9, &n.to_be_bytes()),
            Self::U128(n) => number(out, 10, &n.to_be_bytes()),
            Self::Array(items) => {
                control(out, 11, items.len());
                items.iter().for_each(|item| item.write(out));
            }
            Self::Bool(truth) => control(out, 14, usize::from(*truth)),
            Self::Float(number) => {
                control(out, 15, 4);
                out.extend_from_slice(&number.to_be_bytes());
            }
        }
    }
}

/// The control byte with type and size; for types from 8 on, the type is in a second byte.
fn control(out: &mut Vec<u8>, kind: u8, size: usize) {
    assert!(size < 29, "longer values are written in another way");
    let first = if kind < 8 { kind << 5 } else { 0 };
    out.push(first | size as u8);
    if kind >= 8 {
        out.push(kind - 7);
    }
}

/// A database of these networks: address, length of the prefix (of 32 or 128 bits), value.
pub fn database(networks: &[(IpAddr, u32, Datum)]) -> Vec<u8> {
    let mut data = Vec::new();
    // Targets of both sides of each node: another node, or data.
    let mut nodes: Vec<[Option<Branch>; 2]> = vec![[None; 2]];
    for (ip, length, item) in networks {
        let (bits, length) = match ip {
            IpAddr::V4(ip) => (u128::from(u32::from(*ip)), length + 96),
            IpAddr::V6(ip) => (u128::from(*ip), *length),
        };
        let mut node = 0;
        for depth in 0..length {
            let side = (bits >> (127 - depth) & 1) as usize;
            if depth + 1 == length {
                nodes[node][side] = Some(Branch::Data(data.len()));
                break;
            }
            node = match nodes[node][side] {
                Some(Branch::Node(next)) => next,
                _ => {
                    nodes.push([None; 2]);
                    let next = nodes.len() - 1;
                    nodes[node][side] = Some(Branch::Node(next));
                    next
                }
            };
        }
        item.write(&mut data);
    }
    let count = nodes.len();
    let mut file = Vec::new();
    for side in nodes.iter().flatten() {
        let record = match side {
            None => count,
            Some(Branch::Node(node)) => *node,
            Some(Branch::Data(at)) => count + 16 + at,
        };
        file.extend_from_slice(&(record as u32).to_be_bytes()[1..]);
    }
    file.extend_from_slice(&[0; 16]);
    file.extend_from_slice(&data);
    file.extend_from_slice(b"\xab\xcd\xefMaxMind.com");
    Datum::Map(vec![
        ("node_count", Datum::U32(count as u32)),
        ("record_size", Datum::U16(24)),
        ("ip_version", Datum::U16(6)),
        ("database_type", Datum::Text("Test")),
        ("languages", Datum::Array(vec![Datum::Text("en")])),
        ("binary_format_major_version", Datum::U16(2)),
        ("binary_format_minor_version", Datum::U16(0)),
        ("build_epoch", Datum::U64(1_700_000_000)),
        ("description", Datum::Map(vec![("en", Datum::Text("for tests"))])),
    ])
    .write(&mut file);
    file
}

#[derive(Clone, Copy, Debug)]
enum Branch {
    Node(usize),
    Data(usize),
}
