//! `[limits]`.

use base::limits::{self, Limit, Limits, Unit};

use crate::keys;
use crate::reader::{Item, Reader, Table};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Reads `[limits]`; what is not set there has its default.
pub(super) fn limits(r: &mut Reader, top: &Table<'_>) -> Limits {
    let mut limits = Limits::default();
    let Some(table) = top.item("limits").and_then(|item| r.table(&item, &keys::LIMITS)) else {
        return limits;
    };
    for spec in limits::TABLE {
        let Some(item) = table.item(spec.name) else { continue };
        if let Some(value) = limit(r, spec, &item) {
            *limits.slot(spec.limit) = value;
        }
    }
    limits
}

fn limit(r: &mut Reader, spec: &limits::LimitSpec, item: &Item<'_>) -> Option<u64> {
    let (least, most) = range(spec);
    let value = match spec.unit {
        Unit::Ms => r.duration(item)?,
        Unit::Bytes | Unit::BytesPerSecond => r.size(item)?,
        Unit::Count | Unit::Percent => return r.count(item, least, most),
    };
    if (least..=most).contains(&value) {
        return Some(value);
    }
    let (least, most) = (spec.show(least), spec.show(most));
    r.error(item.span.clone(), format!("`{}` must be from {least} to {most}", spec.name));
    None
}

/// Least and largest value that works.
pub(super) fn range(spec: &limits::LimitSpec) -> (u64, u64) {
    match spec.limit {
        // A header block's offsets have 32 bits and the length of a name 16: these leave room.
        Limit::HeaderBytes => (KIB, 16 * MIB),
        Limit::HeaderFieldBytes => (256, 63 * KIB),
        Limit::ResponseHeaderBytes => (0, 16 * MIB),
        Limit::ResponseFieldBytes => (0, 63 * KIB),
        Limit::HeaderCount => (8, 10_000),
        Limit::TargetBytes => (128, MIB),
        Limit::TrailerBytes => (0, MIB),
        // Less than a read's worth would stall every transfer.
        Limit::WindowBytes => (16 * KIB, 1 << 30),
        // Without any of it nothing could pass; with all of it nothing would stay stored.
        Limit::ClientMemory => (5, 90),
        Limit::ObjectBytes => (KIB, 1 << 40),
        Limit::KeepaliveRequests | Limit::Variants => (1, u64::from(u32::MAX)),
        // No time to wait is a way not to wait.
        Limit::LingerTimeout
        | Limit::WaitTimeout
        | Limit::HitForMissTtl
        | Limit::ResponseTime
        | Limit::BodyRateLeeway
        | Limit::SendRateLeeway
        | Limit::DrainTime
        | Limit::OriginQueueTimeout => (0, YEAR_MS),
        // The store writes 4 MiB at a time, and gathers while it does.
        Limit::DiskQueueBytes => (16 * MIB, 1 << 40),
        // NATS' own bound is 1 MiB, of all that is in a message.
        Limit::ClusterConfigurationBytes => (KIB, 1000 * KIB),
        // Without any, nothing that blocks would ever be done.
        Limit::BlockingThreads => (1, 10_000),
        Limit::Retries => (0, 10),
        // A window below what encoders use by default would cut nearly everything.
        Limit::DecodedWindow => (512 * KIB, 16 * MIB),
        Limit::DecodedRatio => (2, u64::from(u32::MAX)),
        Limit::InterimResponses => (0, 100),
        Limit::Ranges => (0, 1000),
        _ => match spec.unit {
            Unit::Ms => (1, YEAR_MS),
            Unit::Bytes | Unit::BytesPerSecond => (0, 1 << 50),
            Unit::Count => (0, u64::from(u32::MAX)),
            Unit::Percent => (0, 100),
        },
    }
}

const YEAR_MS: u64 = 365 * 24 * 3_600_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_in_range() {
        for spec in limits::TABLE {
            let (least, most) = range(spec);
            assert!((least..=most).contains(&spec.default), "{}", spec.name);
        }
    }
}
