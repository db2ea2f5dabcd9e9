//! A persistent store of opaque records.

mod body;
mod checkpoint;
mod config;
mod disk;
mod error;
mod find;
mod health;
mod journal;
mod layout;
mod open;
mod order;
mod owner;
mod place;
mod read;
mod reads;
mod reclaim;
mod segment;
mod snapshot;
mod stats;
mod stream;
mod sum;
mod threads;
pub mod vfs;
mod volume;
mod writer;

#[cfg(test)]
mod tests;

pub use body::{Body, Lent};
pub use config::{Clock, Config, VolumeConfig};
pub use disk::{Disk, Effect, Entry, Invalidation, Opened};
pub use error::{Damage, Error};
pub use owner::{Condition, Found, Owner, Reason};
pub use place::Place;
pub use read::{Answer, Ask};
pub use reads::Done;
pub use stats::Stats;
pub use stream::{Pushed, Stream};
