//! Task slots: the number of background tasks of one kind that a core has under way.

use std::cell::Cell;
use std::rc::Rc;

/// The number of tasks that a core has under way.
#[derive(Debug, Default)]
pub(crate) struct TaskSlots(Rc<Cell<u64>>);

/// The permit for one task, until it is dropped.
#[derive(Debug)]
pub(crate) struct TaskPermit(Rc<Cell<u64>>);

impl TaskSlots {
    /// The permit for one more task, if fewer than `most` are under way.
    pub(crate) fn take(&self, most: u64) -> Option<TaskPermit> {
        if self.0.get() >= most {
            return None;
        }
        self.0.set(self.0.get() + 1);
        Some(TaskPermit(Rc::clone(&self.0)))
    }
}

impl Drop for TaskPermit {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_tasks_are_under_way_than_allowed() {
        let slots = TaskSlots::default();
        let mut held: Vec<_> = (0..2).map_while(|_| slots.take(2)).collect();
        assert_eq!(held.len(), 2);
        assert!(slots.take(2).is_none() && slots.take(0).is_none());
        held.pop();
        assert!(slots.take(2).is_some());
    }
}
