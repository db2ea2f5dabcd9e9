//! Explanation schemas: the request for an explanation, and its response.

use serde_json::{Value, json};

/// The schemas, by the names that routes use.
pub(crate) fn shapes() -> [(&'static str, Value); 3] {
    [("Explanation", explanation()), ("Question", question()), ("Step", step())]
}

fn explanation() -> Value {
    json!({
        "type": "object",
        "required": [
            "url", "method", "client", "outcome", "steps", "past", "past_note", "advice",
        ],
        "properties": {
            "url": { "type": "string" },
            "method": { "type": "string" },
            "client": { "type": "string" },
            "outcome": {
                "type": "object",
                "required": ["served", "summary"],
                "properties": {
                    "served": { "type": "string", "description": "As logs have it." },
                    "summary": { "type": "string", "description": "A sentence." },
                },
            },
            "steps": { "type": "array", "items": { "$ref": "#/components/schemas/Step" } },
            "past": {
                "type": "array",
                "description": "The last transactions of the URL, the newest first; equal ones in one.",
                "items": { "$ref": "#/components/schemas/Step" },
            },
            "past_note": {
                "type": ["string", "null"],
                "description": "Why there is no past.",
            },
            "advice": {
                "type": "array",
                "description": "What would change the outcome, or why nothing should.",
                "items": { "type": "string", "description": "A sentence or a few." },
            },
        },
    })
}

fn question() -> Value {
    json!({
        "type": "object",
        "required": ["url"],
        "properties": {
            "url": { "type": "string", "description": "The whole URL, http or https." },
            "method": { "type": ["string", "null"], "description": "GET if not said." },
            "headers": {
                "type": ["array", "null"],
                "description": "Lines of fields.",
                "items": { "type": "string", "description": "`Name: value`" },
            },
            "client": {
                "type": ["string", "null"],
                "description": "The address it is asked from; 127.0.0.1 if not said.",
            },
            "last": {
                "type": ["integer", "null"],
                "minimum": 0,
                "maximum": 100,
                "description": "Rows of past transactions told of; 5 if not said.",
            },
        },
        "additionalProperties": false,
    })
}

fn step() -> Value {
    json!({
        "type": "object",
        "required": ["what", "why", "where", "facts", "decided"],
        "properties": {
            "what": { "type": "string", "description": "A heading." },
            "why": { "type": "string", "description": "A sentence or two." },
            "where": {
                "type": ["string", "null"],
                "description": "Where the setting behind it is written.",
            },
            "facts": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name", "value"],
                    "properties": {
                        "name": { "type": "string" },
                        "value": { "type": "string" },
                    },
                },
            },
            "decided": {
                "type": "boolean",
                "description": "Whether it settled what happens.",
            },
            "time": { "type": "integer", "description": "Of a past one: unix seconds." },
            "times": { "type": "integer", "description": "Of past ones: how many are alike." },
        },
    })
}
