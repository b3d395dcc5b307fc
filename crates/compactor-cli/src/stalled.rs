//! The message about reads and writes that do not complete.

use compactor_io::Stall;

use crate::output::say;

/// Prints on stderr that a run waits, for what, and for how long at most.
pub fn say_stalled(stall: &Stall) {
    let left_s = stall.gives_up_after_seconds.saturating_sub(stall.seconds);
    say(format_args!(
        "note: none of {} reads and writes under way has completed for {} seconds (one is of {}). The \
         device may be overloaded or failing, see dmesg; the run gives up in {left_s} seconds",
        stall.operations,
        stall.seconds,
        stall.path.display(),
    ));
}
