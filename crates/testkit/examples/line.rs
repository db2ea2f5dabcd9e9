//! The delay line on the command line: `line --to 127.0.0.1:8080 --delay 50ms --jitter 5ms --rate
//! 1MB --loss 1%`.
//!
//! `--listen ADDRESS` sets the address, otherwise a free port of 127.0.0.1; `--seed N` sets the
//! seed. It prints `listening on ADDRESS` and runs until it is killed.

use std::error::Error;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::time::Duration;

use testkit::delay_line::{Conditions, DelayLine};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut conditions = Conditions::default();
    let mut listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut to = None;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} has no value"))?;
        let wrong = || format!("{word} {value}");
        match word.as_str() {
            "--listen" => listen = value.parse()?,
            "--to" => to = Some(value.parse()?),
            "--delay" => conditions.delay = time(&value).ok_or_else(wrong)?,
            "--jitter" => conditions.jitter = time(&value).ok_or_else(wrong)?,
            "--rate" => conditions.rate = Some(rate(&value).ok_or_else(wrong)?),
            "--loss" => conditions.loss = share(&value).ok_or_else(wrong)?,
            "--seed" => conditions.seed = value.parse()?,
            _ => return Err(format!("{word} is not known").into()),
        }
    }
    let line = DelayLine::start(listen, to.ok_or("--to is missing")?, conditions).await?;
    println!("listening on {}", line.addr());
    std::future::pending().await
}

/// A time such as `50ms` or `1.5s`.
fn time(text: &str) -> Option<Duration> {
    let (number, second) = match text.strip_suffix("ms") {
        Some(number) => (number, 1000.0),
        None => (text.strip_suffix('s')?, 1.0),
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? / second).ok()
}

/// Bytes a second, such as `500KB` or `1MB`.
fn rate(text: &str) -> Option<NonZeroU64> {
    let (number, unit) = match (text.strip_suffix("KB"), text.strip_suffix("MB")) {
        (Some(number), _) => (number, 1_000),
        (_, Some(number)) => (number, 1_000_000),
        _ => (text, 1),
    };
    NonZeroU64::new(number.parse::<u64>().ok()?.checked_mul(unit)?)
}

/// A share such as `1%`.
fn share(text: &str) -> Option<f64> {
    let percent: f64 = text.strip_suffix('%')?.parse().ok()?;
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}
