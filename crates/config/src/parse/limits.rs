//! `[limits]`: the limits of `base::limits`.

use base::limits::{self, LimitSpec, Limits, Unit};

use crate::keys::{COUNT, DURATION, Key, Mark, Section};
use crate::reader::{Reader, SettingValue};

/// Its keys are those of [`limits::TABLE`].
pub(crate) const LIMITS: Section = Section {
    title: "[limits]",
    about: "Every bound that holds, and what happens beyond it. How often each was reached is counted \
            in `limit_hits{limit=\"...\"}`.",
    keys: || {
        let key = |spec: &LimitSpec| Key {
            name: spec.name,
            takes: match spec.unit {
                Unit::Ms => DURATION,
                Unit::Bytes => "a size such as \"64KiB\"",
                Unit::BytesPerSecond => "a size per second such as \"1KiB\"",
                Unit::Count => COUNT,
                Unit::Percent => "a whole number of percent",
            },
            default: match spec.unit {
                Unit::Count | Unit::Percent => spec.show(spec.default).into(),
                _ => format!("\"{}\"", spec.show(spec.default)).into(),
            },
            about: spec.about,
            marks: if spec.is_own { &[Mark::Own] } else { &[] },
            section: None,
            restart: None,
        };
        limits::TABLE.iter().map(key).collect()
    },
    ..Section::EMPTY
};

/// Reads `[limits]`; missing keys keep their defaults.
pub(super) fn limits(r: &mut Reader, item: &SettingValue<'_>) -> Limits {
    let mut limits = Limits::default();
    let Some(table) = r.table(item, &LIMITS) else { return limits };
    for spec in limits::TABLE {
        let item = table.item(spec.name);
        if let Some(value) = item.and_then(|item| limit(r, spec, &item)) {
            *limits.slot(spec.limit) = value;
        }
    }
    limits
}

fn limit(r: &mut Reader, spec: &LimitSpec, item: &SettingValue<'_>) -> Option<u64> {
    let (least, most) = (spec.least, spec.most);
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
