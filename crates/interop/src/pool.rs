//! Servers that tests share. To start one takes longer than most tests.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, Once};

use compactor_io::lock;

use anyhow::Result;
use compactor_testkit::exit::at_exit;

use crate::cassandra::{Cassandra, Mode, Options, Release};

/// Idle servers that are kept, some 500 MiB each.
const MOST_IDLE: usize = 5;

/// Idle servers, the one that was used last at the end.
static IDLE: Mutex<Vec<(Release, Cassandra)>> = Mutex::new(Vec::new());

/// A server with default options, which returns to the pool when it is dropped, unless the test fails. Its tables stay:
/// [`Case::prepare`](crate::cases::Case::prepare) chooses a keyspace that it does not have.
#[derive(Debug)]
pub struct Shared {
    release: Release,
    /// `None` only while it is dropped.
    cassandra: Option<Cassandra>,
    /// Whether the server ends instead of returning to the pool.
    is_last_use: bool,
}

impl Shared {
    /// Takes an idle server of this mode, or starts one.
    ///
    /// # Errors
    /// A server that does not start.
    pub fn take(mode: Mode, release: Release) -> Result<Shared> {
        let is_wanted =
            |(of, server): &(Release, Cassandra)| (*of, server.mode()) == (release, mode);
        let mut idle = lock(&IDLE);
        let found = idle.iter().position(is_wanted).map(|at| idle.remove(at).1);
        drop(idle);
        let options = Options {
            release: Some(release),
            ..Options::default()
        };
        let cassandra = match found {
            Some(cassandra) => cassandra,
            None => Cassandra::start(mode, &options)?,
        };
        Ok(Shared {
            release,
            cassandra: Some(cassandra),
            is_last_use: false,
        })
    }

    /// Ends the server when this is dropped, instead of returning it to the pool.
    #[must_use]
    pub fn for_the_last_time(mut self) -> Shared {
        self.is_last_use = true;
        self
    }
}

impl Deref for Shared {
    type Target = Cassandra;

    fn deref(&self) -> &Cassandra {
        self.cassandra.as_ref().expect("it is not dropped")
    }
}

impl DerefMut for Shared {
    fn deref_mut(&mut self) -> &mut Cassandra {
        self.cassandra.as_mut().expect("it is not dropped")
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let Some(cassandra) = self.cassandra.take() else {
            return;
        };
        if self.is_last_use || std::thread::panicking() || cassandra.is_worn() {
            return;
        }
        end_servers_at_exit();
        let mut idle = lock(&IDLE);
        idle.push((self.release, cassandra));
        let oldest = (idle.len() > MOST_IDLE).then(|| idle.remove(0));
        // Killed only after the others may use the pool again.
        drop(idle);
        drop(oldest);
    }
}

/// Ends idle servers at exit: statics are not dropped, and the servers' directories would stay.
fn end_servers_at_exit() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| at_exit(|| lock(&IDLE).clear()));
}
