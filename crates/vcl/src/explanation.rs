//! Explanation of a program's run in sentences, for `larder explain`. It never shows the values of
//! cookies and credentials.

use message::{HeaderBlock, HeaderId, Request};
use policy::decision_steps::shown;

use crate::source::StatementNumber;
use crate::state::program::Program;
use crate::sub::{Action, SyntheticStatus};

/// File and line of a statement.
pub fn place(program: &Program, at: StatementNumber) -> Option<policy::SettingLocation> {
    let (file, line) = program.place(at)?;
    Some(format!("{}:{line}", file.name).into())
}

/// The source line in which the statement begins.
pub fn text(program: &Program, at: StatementNumber) -> String {
    let Some((file, line)) = program.place(at) else { return String::new() };
    let mut lines = file.text.split(|byte| *byte == b'\n');
    let line = lines.nth(line as usize - 1).unwrap_or_default();
    String::from_utf8_lossy(line.trim_ascii()).into_owned()
}

/// Describes the outcome of a subroutine.
pub fn describe_action(action: &Action) -> String {
    let with = |synthetic: &SyntheticStatus| {
        let reason = synthetic.reason.as_ref().map(|reason| format!(", \"{}\"", shown(reason)));
        format!("({}{})", synthetic.status, reason.unwrap_or_default())
    };
    match action {
        Action::Fail(reason) if reason.is_empty() => "failed".to_owned(),
        Action::Fail(reason) => format!("failed: {reason}"),
        Action::Synth(synthetic) => format!("returned synth{}", with(synthetic)),
        Action::Error(synthetic) => format!("returned error{}", with(synthetic)),
        Action::Pass(Some(seconds)) => format!("returned pass({seconds}s)"),
        Action::Vcl(label) => format!("returned vcl({label})"),
        action => format!("returned {}", action.verb()),
    }
}

/// Lists the parts of a request that differ between `before` and `after`.
pub fn changes(name: &str, before: &Request, after: &Request) -> Vec<String> {
    let mut found = Vec::new();
    if before.method.token() != after.method.token() {
        found.push(format!("{name}.method to {}", shown(after.method.token())));
    }
    if before.target != after.target {
        found.push(format!("{name}.url to {}", shown(&after.target)));
    }
    found.extend(field_changes(name, &before.headers, &after.headers));
    found
}

/// Lists the fields that differ between `before` and `after`.
pub fn field_changes(name: &str, before: &HeaderBlock, after: &HeaderBlock) -> Vec<String> {
    let gone = before.iter().filter(|field| after.value_named(field.name).is_none());
    let gone = gone.map(|field| format!("{name}.http.{} is unset", shown(field.name)));
    let set = after.iter().filter(|field| before.value_named(field.name) != Some(field.value));
    let set = set.map(|field| {
        let (of, id) = (shown(field.name), field.id);
        match matches!(id, HeaderId::Cookie | HeaderId::SetCookie | HeaderId::Authorization) {
            // Values that identify people are not shown.
            true => format!("{name}.http.{of} to another value"),
            false => format!("{name}.http.{of} to {}", shown(field.value)),
        }
    });
    gone.chain(set).collect()
}
