//! Which turn groups stay in the window, and in which shape.
//!
//! Groups are whole: a call and its result go or stay together. As long as everything fits, nothing is
//! touched, and each request begins like the one before. When it no longer fits, all old groups are
//! looked at again at once, down to a target well below the limit, so that many turns fit before the
//! next time. The answer follows from the groups alone: it is the same on every replay.

use std::cmp::Reverse;

/// Turn groups that stay verbatim.
pub const NEWEST: usize = 3;

/// What a group would take in each shape.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Group {
    /// Tokens as it is.
    pub verbatim: usize,
    /// Tokens with its long results as digests; the same as `verbatim` when there is none.
    pub digest: usize,
    /// Tokens with each result as one line; the same as `verbatim` when it has no results.
    pub masked: usize,
    /// Tokens of what is told of it in the summary.
    pub line: usize,
    /// Its importance.
    pub importance: f64,
    /// Whether it is a reply with its calls.
    pub is_turn: bool,
    /// Whether it is somebody's words, which stay while their run is under way.
    pub is_words: bool,
    /// Its run.
    pub run: u32,
}

/// The shape of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// As it is.
    Verbatim,
    /// With its long results as digests.
    Digest,
    /// With each result as one line.
    Masked,
    /// As lines of the summary.
    Line,
}

/// How much room there is, in tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Room {
    /// What may be taken at most.
    pub limit: usize,
    /// What is taken after old groups were looked at.
    pub target: usize,
    /// What lines of the summary may take.
    pub lines: usize,
    /// The importance below which a group is never kept verbatim.
    pub threshold: f64,
}

/// The place of each group, and how often old ones were looked at.
pub fn places(groups: &[Group], room: Room) -> (Vec<Place>, usize) {
    let mut places = Vec::with_capacity(groups.len());
    let (mut taken, mut times) = (0_usize, 0_usize);
    for (at, group) in groups.iter().enumerate() {
        places.push(Place::Verbatim);
        taken = taken.saturating_add(group.verbatim);
        if taken > room.limit {
            let known = groups.get(..=at).unwrap_or(groups);
            (places, taken) = compacted(known, room);
            times = times.saturating_add(1);
        }
    }
    (places, times)
}

/// Everything old becomes lines; then, best first, groups get as much of the room as they may.
fn compacted(groups: &[Group], room: Room) -> (Vec<Place>, usize) {
    let turns = groups.iter().enumerate().filter(|(_, group)| group.is_turn).map(|(at, _)| at);
    let first_kept = turns.rev().take(NEWEST).last().unwrap_or(groups.len());
    let run = groups.last().map(|group| group.run);
    let stays =
        |at: usize, group: &Group| at >= first_kept || (group.is_words && Some(group.run) == run);
    let mut places: Vec<Place> = groups
        .iter()
        .enumerate()
        .map(|(at, group)| if stays(at, group) { Place::Verbatim } else { Place::Line })
        .collect();
    let mut old: Vec<(usize, &Group)> =
        groups.iter().enumerate().filter(|(at, group)| !stays(*at, group)).collect();
    let lines: usize = old.iter().map(|(_, group)| group.line).sum();
    let kept = groups.iter().enumerate().filter(|(at, group)| stays(*at, group));
    let kept: usize = kept.map(|(_, group)| group.verbatim).sum();
    let mut taken = kept.saturating_add(lines.min(room.lines));
    old.sort_by(|a, b| {
        b.1.importance.total_cmp(&a.1.importance).then(Reverse(a.0).cmp(&Reverse(b.0)))
    });
    for (at, group) in old {
        let fits = |cost: &usize| taken.saturating_add(*cost) <= room.target;
        let best = shapes(group, room.threshold).into_iter().find(|(_, cost)| fits(cost));
        if let (Some((place, cost)), Some(slot)) = (best, places.get_mut(at)) {
            *slot = place;
            taken = taken.saturating_add(cost);
        }
    }
    (places, taken)
}

/// The shapes that a group may have, best first. One that is not important enough to stay verbatim
/// stays in none that is the same.
fn shapes(group: &Group, threshold: f64) -> Vec<(Place, usize)> {
    let mut shapes = Vec::with_capacity(3);
    if group.importance > threshold {
        shapes.push((Place::Verbatim, group.verbatim));
    }
    if group.digest < group.verbatim {
        shapes.push((Place::Digest, group.digest));
    }
    if group.masked < group.verbatim {
        shapes.push((Place::Masked, group.masked));
    }
    shapes
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { limit: 1000, target: 700, lines: 100, threshold: 0.7 };

    fn turn(importance: f64) -> Group {
        let (verbatim, digest, masked) = (100, 60, 30);
        let (is_turn, is_words) = (true, false);
        Group { verbatim, digest, masked, line: 10, importance, is_turn, is_words, run: 1 }
    }

    #[test]
    fn nothing_is_touched_while_everything_fits() {
        let (places, times) = places(&[turn(0.1); 10], ROOM);
        assert_eq!((places, times), (vec![Place::Verbatim; 10], 0));
    }

    #[test]
    fn the_newest_stay_and_the_important_come_first() {
        let mut groups = vec![turn(0.1); 11];
        groups[2].importance = 0.9;
        let (places, times) = places(&groups, ROOM);
        assert_eq!(times, 1);
        assert_eq!(places[2], Place::Verbatim);
        assert_eq!(places[8..], [Place::Verbatim; 3]);
        assert!(places[..8].contains(&Place::Line), "{places:?}");
    }

    #[test]
    fn shapes_stay_between_two_looks() {
        let groups = vec![turn(0.5); 60];
        let mut looks = 0;
        for n in 12..60 {
            let (before, times) = places(&groups[..n], ROOM);
            let (after, again) = places(&groups[..=n], ROOM);
            if times == again {
                assert_eq!(before, after[..n]);
            } else {
                looks += 1;
            }
        }
        assert!((8..=20).contains(&looks), "{looks}");
    }

    #[test]
    fn words_of_the_run_under_way_stay() {
        let mut groups = vec![turn(0.1); 12];
        groups[0] = Group { is_turn: false, is_words: true, ..groups[0] };
        assert_eq!(places(&groups, ROOM).0[0], Place::Verbatim);
        groups[0].run = 0;
        assert_ne!(places(&groups, ROOM).0[0], Place::Verbatim);
    }
}
