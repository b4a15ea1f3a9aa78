//! The encoding of operations must not change unnoticed, because receipts hold a hash of it.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use isolate_types::Bulk;
use isolith_protocol::{
    Action, AddCollection, AddDrawers, AddFact, AddFacts, AddRoot, ChangeCollection, ChangeGraph,
    ClearFiles, CopyFiles, CreateCollection, CreateDatabase, CreateTenant, CypherQuery,
    DeclarePredicate, DeleteCollection, DeleteDatabase, DeleteDrawers, DeleteRecords,
    DescribeEntity, DrawerVectors, ENCODING, FinishIndex, ForgetPoison, GraphSegmentEntry,
    GraphTable, ImportGraph, IndexKind, InvalidateFact, Level, LinkFiles, LoadStep, MoveFile,
    NoteGitFacts, Patch, Purge, PutFiles, PutMode, PutRecords, QuarantineGraphSegment,
    QuarantineSegments, ReadJob, Records, Recount, RememberPoison, RemoveFiles, RemoveRoot,
    RenameCollection, ResetDatabases, RetractFact, SaveCheckpoint, SegmentEntry, SetCodeModel,
    SupersedeFact, SwapGraphSegment, SwapPlan, SwapSegments, TableHolds, Tidy, TouchFiles,
    UpdateDrawer, UpdateRecords, UpdateTenant, Which, WhichDrawers,
};
use isolith_types::{
    CollectionSpec, DatabaseName, DrawerPatch, EntityPatch, FileVersion, Metadata, Metric,
    NewDrawer, NewFact, Provenance, Supersede, WhichFact,
};

/// The hash of the samples for each version of [`ENCODING`].
const HASHES: &[(u32, &str)] = &[
    (2, "11492d4b68744839778411247723c226"),
    (3, "18f7525d8d29fa6eb0d9580e81931247"),
    (4, "67a10e316f751483651cccf05c49ad3e"),
    (5, "f711f32b9887cd77508c0ea1917c1431"),
];

#[test]
fn a_changed_encoding_requires_a_new_version() {
    let mut hasher = blake3::Hasher::new();
    for sample in samples() {
        hasher.update(&postcard::to_allocvec(&sample).unwrap());
    }
    let found = hasher.finalize().to_hex();
    let known = HASHES.iter().find(|(encoding, _)| *encoding == ENCODING);
    let known = known.map_or("nothing", |(_, hash)| *hash);
    assert_eq!(
        &found[..32],
        known,
        "the encoding of operations changed: raise ENCODING in write/mod.rs, and add the new hash \
         to HASHES"
    );
}

#[test]
fn every_operation_has_a_sample() {
    let sampled: Vec<&str> = samples().iter().map(Action::name).collect();
    assert_eq!(sampled, Action::NAMES);
}

#[test]
fn operation_names_are_unique() {
    for names in [Action::NAMES, ReadJob::NAMES] {
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }
}

#[test]
fn operations_round_trip_through_postcard() {
    for sample in samples() {
        let bytes = postcard::to_allocvec(&sample).unwrap();
        assert_eq!(postcard::from_bytes::<Action>(&bytes).unwrap(), sample);
    }
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn bulk() -> Bulk {
    Bulk::from(vec![1, 2, 3, 4])
}

fn spec() -> CollectionSpec {
    CollectionSpec {
        name: text("c"),
        dimension: Some(1),
        metric: Metric::Cosine,
        model: Some(text("m")),
    }
}

/// One sample of every operation, in the order of `write_operations!`.
fn samples() -> Vec<Action> {
    [
        records(),
        code(),
        memory(),
        facts(),
        graph(),
        upkeep(),
        databases(),
        vec![checkpoint()],
        more_facts(),
    ]
    .concat()
}

fn records() -> Vec<Action> {
    let records = Records {
        ids: vec![text("a")],
        documents: vec![Some(text("d"))],
        metadatas: vec![Metadata::default()],
        dimension: 1,
        vectors: bulk(),
    };
    let load =
        LoadStep { source: text("s"), first_row: 1, rows_covered: 2, rejected: 1, finished: true };
    let patch = Patch {
        id: text("a"),
        document: Some(None),
        metadata: Some(Metadata::default()),
        vector: Some(vec![1.0]),
    };
    let collection = || text("c");
    vec![
        CreateCollection { spec: spec(), if_missing: true }.into(),
        DeleteCollection { name: collection() }.into(),
        RenameCollection { from: collection(), to: text("d") }.into(),
        PutRecords { collection: collection(), records, mode: PutMode::Upsert, load: Some(load) }
            .into(),
        UpdateRecords { collection: collection(), patches: vec![patch] }.into(),
        DeleteRecords {
            collection: collection(),
            which: Which::Ids(vec![text("a")]),
            limit: Some(1),
        }
        .into(),
    ]
}

fn databases() -> Vec<Action> {
    let database = || DatabaseName { tenant: text("t"), database: text("d") };
    vec![
        CreateTenant { name: text("t") }.into(),
        UpdateTenant { name: text("t"), resource_name: text("r") }.into(),
        CreateDatabase { database: database() }.into(),
        DeleteDatabase { database: database() }.into(),
        AddCollection {
            database: database(),
            spec: spec(),
            metadata: Some(Metadata::default()),
            settings: text("{}"),
            get_or_create: true,
        }
        .into(),
        ChangeCollection {
            collection: text("c"),
            name: Some(text("d")),
            metadata: Some(Metadata::default()),
            settings: Some(text("{}")),
        }
        .into(),
        ResetDatabases.into(),
    ]
}

fn code() -> Vec<Action> {
    let put = PutFiles {
        root: 1,
        files: bulk(),
        ages: vec![1],
        dimension: 1,
        vectors: bulk(),
        model: text("m"),
    };
    let moved = MoveFile {
        root: 1,
        from: text("a"),
        to: text("b"),
        version: FileVersion { hash: [7; 32], size: 1, modified: 2 },
        dimension: 1,
        vectors: bulk(),
        model: text("m"),
    };
    vec![
        AddRoot { path: text("/p"), spec: spec(), worktree: Some(text("w")) }.into(),
        put.into(),
        TouchFiles { root: 1, files: vec![(text("a"), 1, 2)] }.into(),
        moved.into(),
        RemoveFiles { root: 1, paths: vec![text("a")] }.into(),
        ClearFiles { root: Some(1), limit_files: 2 }.into(),
        SetCodeModel { spec: spec() }.into(),
        RemoveRoot { root: 1 }.into(),
        FinishIndex { root: 1 }.into(),
        LinkFiles { root: 1 }.into(),
        NoteGitFacts { root: 1, facts: vec![(text("a"), Some(text("b")), 1)] }.into(),
    ]
}

fn memory() -> Vec<Action> {
    let (vectors, drawers) = (DrawerVectors::default(), vec![NewDrawer::default()]);
    let patch = Box::new(DrawerPatch::default());
    vec![
        AddDrawers { drawers, skip_bad: true, vectors: vectors.clone() }.into(),
        UpdateDrawer { id: text("a"), patch, vectors }.into(),
        DeleteDrawers { which: WhichDrawers::Ids(vec![text("a")]) }.into(),
    ]
}

fn checkpoint() -> Action {
    let (drawers, facts) = (vec![NewDrawer::default()], vec![NewFact::default()]);
    SaveCheckpoint { drawers, facts, vectors: DrawerVectors::default() }.into()
}

fn facts() -> Vec<Action> {
    let which = || WhichFact::Id(text("f1"));
    let change = Supersede {
        old: which(),
        object: text("o"),
        object_type: Some(text("t")),
        at: None,
        confidence: Some(0.5),
        provenance: Provenance::default(),
    };
    vec![
        AddFact { fact: NewFact::default() }.into(),
        InvalidateFact { which: which(), at: None }.into(),
        SupersedeFact { change }.into(),
        DescribeEntity { patch: EntityPatch::default() }.into(),
    ]
}

fn more_facts() -> Vec<Action> {
    vec![
        AddFacts { facts: vec![NewFact::default()] }.into(),
        RetractFact { which: WhichFact::Id(text("f1")) }.into(),
        DeclarePredicate { name: text("p"), single_valued: true }.into(),
    ]
}

fn graph() -> Vec<Action> {
    let table = GraphTable {
        holds: TableHolds::Nodes { label: text("L"), key: Some(text("k")) },
        header: text("k"),
        delimiter: b',',
        skip_bad: true,
        rows_before: 1,
        rows: bulk(),
        is_last: true,
    };
    let query = CypherQuery { text: text("RETURN 1"), ..CypherQuery::default() };
    vec![ChangeGraph { query }.into(), ImportGraph { table }.into()]
}

fn upkeep() -> Vec<Action> {
    let segment = SegmentEntry {
        level: Level::Base,
        kind: IndexKind::Vector,
        file: text("f"),
        rows: 1,
        bytes: 2,
        checksum: 3,
        quarantined: Some(text("r")),
    };
    let plan = SwapPlan {
        collection: 1,
        from_generation: 2,
        level: Level::Base,
        complete_to: 3,
        segments: vec![segment],
    };
    let entry = GraphSegmentEntry {
        change: 1,
        edges: 2,
        file: text("f"),
        bytes: 3,
        checksum: 4,
        quarantined: None,
    };
    let (role, input) = (text("r"), vec![1]);
    let version = FileVersion { hash: [7; 32], size: 1, modified: 2 };
    let copy = CopyFiles { root: 1, from: vec![2], parser: 3, files: vec![(text("a"), version)] };
    vec![
        SwapSegments { plan }.into(),
        QuarantineSegments {
            collection: 1,
            generation: 2,
            files: vec![text("f")],
            reason: text("r"),
        }
        .into(),
        SwapGraphSegment { entry: Some(entry) }.into(),
        QuarantineGraphSegment { file: text("f"), reason: text("r") }.into(),
        Purge { limit_rows: 1 }.into(),
        RememberPoison { role: role.clone(), input: input.clone(), poison: text("p") }.into(),
        ForgetPoison { role: Some(role), input: Some(input) }.into(),
        Tidy.into(),
        Recount.into(),
        copy.into(),
    ]
}
