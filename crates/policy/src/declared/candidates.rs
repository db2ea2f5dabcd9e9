//! Candidates: the routes of a site that a request may belong to, found for 64 routes at a time. A
//! site with fifty routes is not to look at fifty patterns for each request.
//!
//! They must never lack a route that the request is in the scope of.

use crate::conditions::needs::{Buckets, JoinedLists, PARTS, Part};
use crate::conditions::{RouteScope, RoutedRequest};

/// Routes up to which they are looked at one by one: that takes less than to find candidates.
const FEW: usize = 8;

/// Routes in a block.
const BLOCK: usize = u64::BITS as usize;

/// The routes of a site, by their needs.
#[derive(Debug)]
pub(super) struct Candidates {
    blocks: Vec<Block>,
    /// The buckets of each part that a route needs.
    needed: [Buckets; PARTS],
    /// Those of the parts that the URL and the method have.
    needed_of_url: [Buckets; PARTS],
    lists: JoinedLists,
}

/// The needs of a route.
#[derive(Debug)]
struct RouteNeeds {
    is_unconditional: bool,
    needs: [Option<Buckets>; PARTS],
}

/// Up to 64 routes, a bit for each.
#[derive(Debug)]
struct Block {
    all: u64,
    /// Those without conditions.
    unconditional: u64,
    /// Those that need nothing of a part.
    free: [u64; PARTS],
    /// Those that a bucket of a part suffices for.
    by_bucket: Box<[[u64; 64]; PARTS]>,
}

/// The routes that are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Those for a request.
    All,
    /// Those that the URL and the method alone lead to.
    Unconditional,
}

impl Candidates {
    /// Those of the routes with these scopes. `None` if they are few.
    pub(super) fn of(scopes: &[&RouteScope]) -> Option<Self> {
        if scopes.len() <= FEW {
            return None;
        }
        let routes = scopes.iter().map(|scope| RouteNeeds {
            is_unconditional: scope.when.is_empty(),
            needs: Part::ALL.map(|part| scope.needs(part)),
        });
        let routes: Vec<_> = routes.collect();
        let needed = Part::ALL.map(|part| {
            let needs = routes.iter().filter_map(|route| route.needs[part as usize]);
            needs.fold(0, |all, own| all | own)
        });
        let blocks = routes.chunks(BLOCK).map(Block::of).collect();
        let mut needed_of_url = [0; PARTS];
        for part in Part::OF_URL {
            needed_of_url[part as usize] = needed[part as usize];
        }
        let lists = JoinedLists::of(scopes.iter().copied());
        Some(Self { blocks, needed, needed_of_url, lists })
    }

    /// The first candidate that `is_it`.
    pub(super) fn find(
        &self,
        wanted: Wanted,
        asked: RoutedRequest<'_>,
        is_it: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let needed = match wanted {
            Wanted::All => &self.needed,
            Wanted::Unconditional => &self.needed_of_url,
        };
        let cheap = self.lists.cheap(needed, asked);
        let mut dear = [None; PARTS];
        for (number, block) in self.blocks.iter().enumerate() {
            let mut left = if wanted == Wanted::All { block.all } else { block.unconditional };
            for part in Part::CHEAP {
                left &= block.met_by(part, cheap[part as usize]);
            }
            for part in Part::DEAR {
                if left & !block.free[part as usize] != 0 {
                    let had = *dear[part as usize].get_or_insert_with(|| {
                        self.lists.dear(part, asked) & self.needed[part as usize]
                    });
                    left &= block.met_by(part, had);
                }
            }
            while left != 0 {
                let at = number * BLOCK + left.trailing_zeros() as usize;
                if is_it(at) {
                    return Some(at);
                }
                left &= left - 1;
            }
        }
        None
    }
}

impl Block {
    fn of(routes: &[RouteNeeds]) -> Self {
        let set = |is_in: &dyn Fn(&RouteNeeds) -> bool| {
            let members = routes.iter().enumerate().filter(|(_, route)| is_in(route));
            members.fold(0, |all, (at, _)| all | 1 << at)
        };
        let suffices = |part: Part, bucket: usize| {
            set(&|route| route.needs[part as usize].is_some_and(|own| own >> bucket & 1 == 1))
        };
        let by_bucket = |part| std::array::from_fn(|bucket| suffices(part, bucket));
        Self {
            all: set(&|_| true),
            unconditional: set(&|route| route.is_unconditional),
            free: Part::ALL.map(|part| set(&|route| route.needs[part as usize].is_none())),
            by_bucket: Box::new(Part::ALL.map(by_bucket)),
        }
    }

    /// The routes whose needs of a part are met by one of these buckets.
    #[inline]
    fn met_by(&self, part: Part, had: Buckets) -> u64 {
        let by_bucket = &self.by_bucket[part as usize];
        let (mut met, mut left) = (self.free[part as usize], had);
        while left != 0 {
            met |= by_bucket[left.trailing_zeros() as usize];
            left &= left - 1;
        }
        met
    }
}
