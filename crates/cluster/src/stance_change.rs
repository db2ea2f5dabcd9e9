//! A change of a node's part.
//!
//! The order of things is what matters: trust ends before the others are shown that the node has
//! left, and begins with a question that was put behind a card that says it is back.

use std::sync::Arc;
use std::time::Duration;

use crate::cluster::Cluster;
use crate::stance::{DrainRefusal, MembershipOrder, Stance};

impl Cluster {
    /// Has the node stand as `order` says, and waits until the others have been shown, as far as
    /// they can be now: [`crate::Status::is_shown`] says it.
    ///
    /// # Errors
    /// The order does not fit how the node stands.
    pub async fn order(self: &Arc<Self>, order: MembershipOrder) -> Result<(), DrainRefusal> {
        if self.stand(order)? {
            self.turned.notify_one();
            let most = Duration::from_millis(self.settings.wait_ms);
            _ = rt::time::timeout(most, self.shown()).await;
        }
        Ok(())
    }

    /// Takes the stance. Returns true if it is another than before.
    fn stand(&self, order: MembershipOrder) -> Result<bool, DrainRefusal> {
        let mut state = self.state.lock();
        let before = state.posture.stance;
        let stance = order.stance(before)?;
        if stance == before {
            return Ok(false);
        }
        match stance {
            Stance::Left => state.follower.leave(),
            // Read under the lock: a card that is made later says that it is back.
            Stance::Member | Stance::Draining => state.follower.come_back(rt::now().mono_ms),
        }
        state.posture.stance = stance;
        state.posture.turn += 1;
        self.host.trust_until(state.follower.trusted_until_ms());
        self.host.stand(stance);
        Ok(true)
    }

    /// Waits until the others have been shown the stance, or the node is out of touch.
    async fn shown(&self) {
        let mut changed = self.changed.subscribe();
        loop {
            changed.borrow_and_update();
            if !self.will_be_shown() || changed.changed().await.is_err() {
                return;
            }
        }
    }

    /// Returns true if the others have not been shown the stance, and can be.
    fn will_be_shown(&self) -> bool {
        let state = self.state.lock();
        !state.posture.is_shown() && state.context.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{nobody, settings};

    #[tokio::test]
    async fn an_order_counts_at_once_and_an_own_wrong_one_says_what_to_do() {
        let cluster = Cluster::new(settings("n1"), nobody(), None);
        let stance = || (cluster.status().stance, cluster.status().is_shown);
        assert_eq!(stance(), (Stance::Member, true));
        for (order, stands) in [
            (MembershipOrder::Join, Ok((Stance::Member, true))),
            (MembershipOrder::Drain, Ok((Stance::Draining, false))),
            (MembershipOrder::Drain, Ok((Stance::Draining, false))),
            (MembershipOrder::Leave, Ok((Stance::Left, false))),
            (MembershipOrder::Drain, Err(DrainRefusal)),
            (MembershipOrder::Leave, Ok((Stance::Left, false))),
            (MembershipOrder::Join, Ok((Stance::Member, false))),
        ] {
            let done = cluster.order(order).await;
            assert_eq!(done.map(|()| stance()), stands, "{order:?}");
        }
        assert!(DrainRefusal.to_string().contains("`join` it first"));
    }
}
