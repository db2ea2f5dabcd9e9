//! From an origin's exchange to where its body goes, and under what it is kept: the same for sites
//! with a declared policy and with a program.

use cache::{BodyWriter, Push, Variant};
use message::Request;
use message::vary::{VaryNames, vary_signature};
use origin::Exchange;

/// Pushes a body through a window; false when the origin did not send it to its end.
pub(crate) async fn pass_on(mut exchange: Exchange, mut writer: BodyWriter) -> bool {
    let watch = writer.watch();
    loop {
        let mut push = Push::Ok;
        let sink = &mut |data: &[u8]| push = writer.push(data);
        let next = tokio::select! {
            biased;
            next = exchange.next(sink) => next,
            () = watch.abandoned() => return true,
        };
        match next {
            Ok(true) if push == Push::Ok => {}
            Ok(true) => {
                if writer.room().await.is_err() {
                    writer.abort();
                    return true;
                }
            }
            Ok(false) => {
                writer.finish();
                return true;
            }
            Err(_) => {
                writer.abort();
                return false;
            }
        }
    }
}

/// Reads an answer whose body nobody needs to its end, so that the connection can be kept.
pub(crate) async fn drain(mut exchange: Exchange) {
    while let Ok(true) = exchange.next(&mut |_| {}).await {}
}

/// A Vary's names and a request's signature over them, as the store keeps them.
pub(crate) struct Selected {
    names: VaryNames,
    signature: Vec<u8>,
}

impl Selected {
    pub(crate) fn of(names: VaryNames, request: &Request) -> Self {
        let mut signature = Vec::new();
        vary_signature(names.as_bytes(), &request.headers, &mut signature);
        Self { names, signature }
    }

    pub(crate) fn variant(&self) -> Variant<'_> {
        Variant { spec: self.names.as_bytes(), signature: &self.signature }
    }
}
