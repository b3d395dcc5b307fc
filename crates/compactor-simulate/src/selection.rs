//! Selection of a simulation's compactions.

use compactor_strategy::CompactionStrategyManager;
use compactor_strategy::sstable::Sstable;
use compactor_strategy::task::Task;

/// Selects the compactions of a simulation. It sees all changes of the table's SSTables, so that a strategy
/// outside of the simulation, such as Cassandra's own, can select too.
pub trait Selection {
    /// The simulation starts with these SSTables.
    fn start(&mut self, _sstables: &[Sstable], _now_ms: i64) {}

    /// Selects the next compaction, which starts at once; `None` if there is nothing to do now. `manager` has
    /// the table's SSTables and the options of the setup.
    fn next_task(&mut self, manager: &mut CompactionStrategyManager, now_ms: i64) -> Option<Task>;

    /// An SSTable was flushed.
    fn flushed(&mut self, _sstable: &Sstable) {}

    /// A compaction has ended: these outputs replace its inputs. A change of level keeps the id.
    fn completed(&mut self, _task: &Task, _outputs: &[Sstable]) {}
}

/// The strategy of the setup.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SetupStrategy;

impl Selection for SetupStrategy {
    fn next_task(&mut self, manager: &mut CompactionStrategyManager, now_ms: i64) -> Option<Task> {
        manager.next_task(now_ms).ok()
    }
}
