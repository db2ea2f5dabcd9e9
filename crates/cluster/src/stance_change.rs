//! A change of a node's stance.
//!
//! The order of steps matters: trust must end before the others see that the node has left, and may
//! begin again only with a question sent after the card of its return.

use std::sync::Arc;
use std::time::Duration;

use crate::cluster::Cluster;
use crate::stance::{DrainRefusal, MembershipOrder, Stance};

impl Cluster {
    /// Changes the stance by `order`, and waits until the others have been shown, if possible: see
    /// [`crate::Status::is_shown`].
    ///
    /// # Errors
    /// The order does not fit the present stance.
    pub async fn order(self: &Arc<Self>, order: MembershipOrder) -> Result<(), DrainRefusal> {
        if self.stand(order)? {
            self.turned.notify_one();
            let most = Duration::from_millis(self.settings.wait_ms);
            _ = rt::time::timeout(most, self.shown()).await;
        }
        Ok(())
    }

    /// Sets the stance. Returns true if it is a change.
    fn stand(&self, order: MembershipOrder) -> Result<bool, DrainRefusal> {
        let mut state = self.state.lock();
        let before = state.posture.stance;
        let stance = order.stance(before)?;
        if stance == before {
            return Ok(false);
        }
        match stance {
            Stance::Left => state.follower.leave(),
            // Read under the lock, so that a later card shows the return.
            Stance::Member | Stance::Draining => state.follower.come_back(rt::now().mono_ms),
        }
        state.posture.stance = stance;
        state.posture.turn += 1;
        self.host.trust_until(state.follower.trusted_until_ms());
        self.host.stand(stance);
        Ok(true)
    }

    /// Waits until the others have been shown the stance, or contact is lost.
    async fn shown(&self) {
        let mut changed = self.changed.subscribe();
        loop {
            changed.borrow_and_update();
            if !self.will_be_shown() || changed.changed().await.is_err() {
                return;
            }
        }
    }

    /// Returns true if the stance has not been shown, and can be.
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
    async fn an_order_takes_effect_at_once_and_an_invalid_one_names_a_remedy() {
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
