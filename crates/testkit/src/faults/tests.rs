//! The table of cases: complete, with unique names, and each case as it claims to be.

use std::collections::HashSet;

use super::*;
use crate::origin::ScriptedOrigin;
use crate::reply::ReplyOutcome;

#[test]
fn there_are_at_least_sixty_cases_with_names_of_their_own() {
    let cases = fault_cases();
    let names: HashSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert!(cases.len() >= 60, "{}", cases.len());
    assert_eq!(names.len(), cases.len());
    assert!(names.iter().all(|name| name.bytes().all(|b| b.is_ascii_graphic() && b != b'/')));
}

/// A proxy that forwarded everything unchecked would show its client exactly this.
#[tokio::test]
async fn bodies_that_should_be_incomplete_are_so_without_a_proxy_too() {
    for case in bodies::cases() {
        let origin = ScriptedOrigin::start().await.expect("a port");
        origin.on("/case", case.script);
        let mut client = crate::client::RawClient::connect(origin.addr()).await.expect("connected");
        client = client.patience(std::time::Duration::from_millis(150));
        let seen = client.get("/case").await.expect("sent");
        let whole = matches!(seen, ReplyOutcome::Complete(_));
        assert_eq!(
            whole,
            matches!(case.expected, FaultExpectation::Whole(..)),
            "{}: {seen:?}",
            case.name
        );
    }
}
