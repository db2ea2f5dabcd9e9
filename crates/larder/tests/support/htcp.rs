//! HTCP datagrams, as MediaWiki sends them.

/// A request as MediaWiki sends it: `pack( 'nxxnCxNxxa*n', ... )` around
/// `pack( 'na4na*na8n', 4, 'HEAD', strlen( $url ), $url, 8, 'HTTP/1.0', 0 )`.
pub(crate) fn mediawikis(url: &str, flags: u8) -> Vec<u8> {
    let mut specifier = b"\0\x04HEAD".to_vec();
    specifier.extend((url.len() as u16).to_be_bytes());
    specifier.extend(url.as_bytes());
    specifier.extend(b"\0\x08HTTP/1.0\0\0");
    let data = 8 + 2 + specifier.len() as u16;
    let mut datagram = (4 + data + 2).to_be_bytes().to_vec();
    datagram.extend([0, 0]);
    datagram.extend(data.to_be_bytes());
    datagram.extend([4, flags, 0, 0, 0, 9, 0, 0]);
    datagram.extend(specifier);
    datagram.extend([0, 2]);
    datagram
}
