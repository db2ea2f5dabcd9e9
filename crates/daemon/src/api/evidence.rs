//! The API of evidence: what advice needs to know of the store, and no record has.

use admin::AdminResponse;
use flow::invalidate::RecentInvalidation;
use flow::{MarkedPage, VariedPage};
use serde_json::{Value, json};

use crate::state::Daemon;

/// Pages of each kind in one response.
const PAGES_MAX: usize = 100;

impl Daemon {
    /// The evidence about the store.
    pub(super) async fn evidence(&self) -> AdminResponse {
        let survey = self.shared.invalidator.survey(rt::now().mono_ms, PAGES_MAX).await;
        let store = self.shared.cache.stats();
        let [quarter, half, three_quarters, whole] = store.returned;
        let varied: Vec<Value> = survey.varied.pages.iter().map(varied_page).collect();
        let marked: Vec<Value> = survey.marked.pages.iter().map(marked_page).collect();
        let invalidations: Vec<Value> = survey.invalidations.iter().map(invalidation).collect();
        AdminResponse::json(&json!({
            "memory": {
                "bytes": store.bytes,
                "budget_bytes": store.budget,
                "objects": store.objects,
                "stores": store.stores,
                "evictions": store.evictions,
                "refused": store.refused,
                "too_large": store.too_large,
                "returned": {
                    "quarter": quarter,
                    "half": half,
                    "three_quarters": three_quarters,
                    "whole": whole,
                },
            },
            "variants": {
                "stored": store.variants,
                "equal": store.variants_equal,
                "over": store.variants_over,
            },
            "varied": { "count": survey.varied.count, "pages": varied },
            "marked": { "count": survey.marked.count, "pages": marked },
            "invalidations": invalidations,
        }))
    }
}

fn varied_page(VariedPage { url, vary, variants, bodies }: &VariedPage) -> Value {
    json!({ "url": url, "vary": vary, "variants": variants, "bodies": bodies })
}

fn marked_page(MarkedPage { url, left_ms }: &MarkedPage) -> Value {
    json!({ "url": url, "left_ms": left_ms })
}

fn invalidation(own: &RecentInvalidation) -> Value {
    json!({
        "unix_ms": own.unix_ms,
        "selection": own.selection,
        "soft": own.soft,
        "objects": own.objects(),
    })
}
