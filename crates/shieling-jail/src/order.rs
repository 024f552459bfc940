//! An order for a jail, as the host sends it: its descriptors, its plan, and the answer to it.

use std::os::fd::{AsFd as _, OwnedFd};

use shieling_jail::message::{self, Answer, Layer};
use shieling_jail::plan::Plan;

use crate::refusal::{Step, While as _, refuse};
use crate::socket::{self, read_whole};
use crate::view;

/// The longest plan, in bytes: a hundred thousand hidden files, and room to spare.
const LONGEST_PLAN: usize = 16 * 1024 * 1024;

/// What a monitor says when it has taken an order: whether the next one shall make namespaces while it
/// waits, since that is what its host asks for.
pub(crate) const WARM: u8 = b'w';
/// That it shall not.
pub(crate) const COLD: u8 = b'c';
/// That there shall be none before the next order.
pub(crate) const LATER: u8 = b'l';

/// How many descriptors an order has.
pub(crate) const ORDER: usize = 3;

/// What comes with an order.
pub(crate) struct Order {
    /// The jail's way to the host: one answer, then orders to start commands.
    pub(crate) control: OwnedFd,
    /// Orders to hide and protect more.
    pub(crate) updates: OwnedFd,
    /// The encoded plan.
    pub(crate) plan: OwnedFd,
}

/// An order from its descriptors.
pub(crate) fn order_of(fds: Vec<OwnedFd>) -> Option<Order> {
    let [control, updates, plan] = <[OwnedFd; ORDER]>::try_from(fds).ok()?;
    Some(Order { control, updates, plan })
}

/// A plan from its file.
pub(crate) fn read(plan: &OwnedFd) -> Step<Plan> {
    let bytes = read_whole(plan, LONGEST_PLAN).or_refuse(Layer::Start, || "reading the plan".to_owned())?;
    let Some(plan) = message::decode::<Plan>(&bytes) else {
        return refuse(Layer::Start, "the plan is not one of this version's");
    };
    view::check(&plan.view)?;
    Ok(plan)
}

/// Tells the host what came of its plan, and gives it what goes with that.
pub(crate) fn answer(control: &OwnedFd, answer: &Answer, given: &[OwnedFd]) {
    let given: Vec<_> = given.iter().map(OwnedFd::as_fd).collect();
    // If the host is gone, nobody needs to know.
    let _ = socket::send(control, &message::encode(answer), &given);
}
