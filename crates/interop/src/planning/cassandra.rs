//! Requests to a strategy of Cassandra's.

use anyhow::Result;
use compactor_strategy::live::Live;
use compactor_strategy::sstable::{RepairState, Sstable, SstableId};
use compactor_strategy::task::{Split, Task, TaskKind};
use compactor_strategy::token::{Position, Token};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Opening;
use crate::cassandra::{Cassandra, Table, field};

const KEYSPACE: &str = "planning";
const TABLE: &str = "planned";

/// A server with a table whose SSTables are only described.
pub(super) struct Session<'c> {
    cassandra: &'c mut Cassandra,
    table: Table,
}

/// A task that a strategy of Cassandra's selected.
#[derive(Debug, Deserialize)]
pub(super) struct TheirTask {
    /// Number by which requests refer to it.
    pub(super) number: u64,
    /// Ascending.
    #[serde(deserialize_with = "ids")]
    pub(super) inputs: Vec<SstableId>,
    pub(super) level: u32,
    pub(super) max_sstable_bytes: u64,
    pub(super) is_level_only: bool,
    /// Last tokens of output shards.
    pub(super) boundaries: Vec<i64>,
}

fn ids<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<SstableId>, D::Error> {
    let ids = Vec::<u64>::deserialize(deserializer)?;
    let mut ids: Vec<SstableId> = ids.into_iter().map(SstableId).collect();
    ids.sort_unstable();
    Ok(ids)
}

impl<'c> Session<'c> {
    /// Makes the table unless an earlier session did.
    pub(super) fn start(cassandra: &'c mut Cassandra) -> Result<Session<'c>> {
        let statements = [
            format!(
                "CREATE KEYSPACE IF NOT EXISTS {KEYSPACE} WITH replication = \
                 {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
            ),
            format!("CREATE TABLE IF NOT EXISTS {KEYSPACE}.{TABLE} (k int PRIMARY KEY)"),
        ];
        cassandra.cql(&statements)?;
        let table = Table::new(KEYSPACE, TABLE);
        Ok(Session { cassandra, table })
    }

    pub(super) fn open(&mut self, opening: &Opening, sstables: &[Sstable]) -> Result<()> {
        let fields = json!({
            "class": opening.strategy.class(), "options": opening.options,
            "now_ms": opening.now_ms, "sstables": described(sstables),
        });
        self.ask("plan_open", fields).map(drop)
    }

    pub(super) fn add(&mut self, sstables: &[Sstable]) -> Result<()> {
        let fields = json!({"sstables": described(sstables)});
        self.ask("plan_add", fields).map(drop)
    }

    /// The next task, and how many remain.
    pub(super) fn next(
        &mut self,
        now_ms: i64,
        gc_before_s: i64,
    ) -> Result<(Option<TheirTask>, usize)> {
        let fields = json!({"now_ms": now_ms, "gc_before_s": gc_before_s});
        let reply = self.ask("plan_next", fields)?;
        Ok((field(&reply, "task")?, field(&reply, "remaining")?))
    }

    pub(super) fn abort(&mut self, number: u64) -> Result<()> {
        self.ask("plan_abort", json!({"number": number})).map(drop)
    }

    pub(super) fn complete(&mut self, number: u64, outputs: &[Sstable]) -> Result<()> {
        let fields = json!({"number": number, "outputs": described(outputs)});
        self.ask("plan_complete", fields).map(drop)
    }

    fn ask(&mut self, operation: &str, fields: Value) -> Result<Value> {
        self.cassandra.ask(operation, &self.table, fields)
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // If this fails, the next session closes it first.
        let _ = self.ask("plan_close", json!({}));
    }
}

fn described(sstables: &[Sstable]) -> Vec<Value> {
    sstables.iter().map(describe).collect()
}

fn describe(sstable: &Sstable) -> Value {
    let position = |position: &Position| {
        let token = i64::try_from(position.token.0).unwrap_or(i64::MAX);
        json!([token, position.key.first()])
    };
    let samples = sstable.keys.samples.as_ref().map(|samples| {
        let tokens = samples.tokens.iter().map(|token| i64::try_from(token.0));
        let tokens: Vec<i64> = tokens.map(|token| token.unwrap_or(i64::MAX)).collect();
        tokens
    });
    json!({
        "id": sstable.id.0, "data_bytes": sstable.data_bytes, "bytes_on_disk": sstable.bytes_on_disk,
        "first": position(&sstable.first), "last": position(&sstable.last),
        "min_timestamp": sstable.min_timestamp, "max_timestamp": sstable.max_timestamp,
        "max_local_deletion_time": sstable.max_local_deletion_time, "level": sstable.level,
        "is_repaired": sstable.repair == RepairState::Repaired, "is_suspect": sstable.is_suspect,
        "created_ms": sstable.created_ms, "token_space_coverage": sstable.token_space_coverage,
        "tombstones": sstable.tombstones.points(), "cells": sstable.tombstones.cells(),
        "keys": sstable.keys.keys, "partitions": sstable.keys.partitions, "samples": samples,
    })
}

impl TheirTask {
    /// Whether it equals our task.
    pub(super) fn is_same(&self, ours: &Task, live: &Live) -> bool {
        let mut inputs: Vec<SstableId> = ours.inputs.clone();
        inputs.sort_unstable();
        inputs == self.inputs && self.has_output(ours, live)
    }

    /// Whether its SSTables have the same sizes as those of our task. If a tier has more SSTables of one size than a
    /// task may have, Cassandra takes them in the order of a hash set.
    pub(super) fn is_tie(&self, ours: &Task, live: &Live) -> bool {
        let sizes = |ids: &[SstableId]| {
            let sstables = ids.iter().filter_map(|&id| live.get(id));
            let mut sizes: Vec<u64> = sstables.map(|sstable| sstable.data_bytes).collect();
            sizes.sort_unstable();
            sizes
        };
        ours.kind == TaskKind::Compact
            && ours.expired.is_empty()
            && sizes(&ours.inputs) == sizes(&self.inputs)
            && self.has_output(ours, live)
    }

    fn has_output(&self, ours: &Task, live: &Live) -> bool {
        let max_bytes = match ours.output.split {
            Split::MaxBytes(bytes) => bytes,
            _ => i64::MAX.unsigned_abs(),
        };
        ours.output.level == self.level
            && (!ours.expired.is_empty() || self.has_boundaries(ours, live))
            && max_bytes == self.max_sstable_bytes
            && (ours.kind == TaskKind::LevelOnly) == self.is_level_only
    }

    /// Whether the output shards are the same. With expired inputs they are not compared: Cassandra's task
    /// looks for those once more when it runs, and computes the shards from the others. Ours are only those among the
    /// partitions of the inputs.
    fn has_boundaries(&self, ours: &Task, live: &Live) -> bool {
        let inputs = ours.inputs.iter().filter_map(|&id| live.get(id));
        let inputs: Vec<_> = inputs.map(|s| s.first.token..s.last.token).collect();
        let divides = |token: &Token| inputs.iter().any(|tokens| tokens.contains(token));
        let boundaries = match &ours.output.split {
            Split::Shards(shards) => &shards.boundaries[..],
            _ => &[],
        };
        let theirs = self.boundaries.iter().map(|&token| Token(token.into()));
        let boundaries = boundaries.iter().copied().filter(divides);
        boundaries.eq(theirs.filter(divides))
    }
}
