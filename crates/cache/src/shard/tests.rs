//! The consistency check of a shard, for the tests of the crate.

use super::*;

impl<L: Lower> Shard<L> {
    /// Asserts that the queues' sums, the tokens and the table agree. Returns the number of
    /// objects.
    pub(crate) fn check(&self) -> usize {
        let (mut small, mut main) = ((0, 0), (0, 0));
        let mut objects = 0;
        for slot in self.table.iter() {
            for object in slot.variants() {
                assert!(object.is_live() && !object.is_broken());
                assert_eq!(object.index_state.weight(), object.memory());
                let sums =
                    if object.index_state.place() & MAIN == 0 { &mut small } else { &mut main };
                *sums = (sums.0 + object.index_state.weight(), sums.1 + 1);
                objects += 1;
            }
            if let IndexSlot::Many(_, more) = slot {
                let is_short = more.variants.len() == 1;
                assert!(!more.leads.is_empty() || more.marker.is_some() || !is_short);
                if more.marker.is_some() {
                    small = (small.0 + KeyEntries::cost(more.key.len()), small.1 + 1);
                }
            }
        }
        assert_eq!((self.small.bytes, self.small.live), small);
        assert_eq!((self.main.bytes, self.main.live), main);
        for (queue, living) in [(&self.small, small.1), (&self.main, main.1)] {
            let found = queue.iter().filter(|token| self.of_token(*token).is_some()).count();
            assert_eq!(found, living);
            assert_eq!(queue.len(), living + queue.dead());
            let suffered = living + queue::DEAD_SUFFERED;
            assert!(queue.dead() <= suffered || queue.is_sifting());
        }
        assert_eq!(self.charge.bytes(), self.memory());
        self.cold.check();
        objects
    }
}
